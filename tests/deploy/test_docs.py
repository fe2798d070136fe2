"""The operators' pages: tables of metrics are written by these tests (`make golden`), and what is named exists."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from collectors.serving.pods import server_of_pod
from fleet.catalogue import CATALOGUE
from fleet.catalogue_device import DEVICE_METRICS
from fleet.catalogue_pipeline import PIPELINE_METRICS
from fleet.config import parse_config
from services import agent
from services.commands import gputally

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("agent.md", "hub.md")
ON_THE_HUB = "gputally_hub_"
ENDINGS = ("_bucket", "_sum", "_count")


def metric_table(*, of_hub: bool) -> str:
    """Each metric with the labels that it has beside those of every series of its kind."""
    lines = ["| metric | labels | says |", "|---|---|---|"]
    metrics = PIPELINE_METRICS if of_hub else (*DEVICE_METRICS, *PIPELINE_METRICS)
    for metric in metrics:
        if metric.name.startswith(ON_THE_HUB) == of_hub:
            labels = [f"`{label}`" for label in metric.labels if of_hub or label not in {"node", "uuid"}]
            lines.append(f"| `{metric.name}` | {', '.join(labels)} | {metric.help} |")
    return "\n".join(lines)


@pytest.mark.parametrize(("page", "block"), [("agent.md", "agent metrics"), ("hub.md", "hub metrics")])
def test_table_says_what_the_catalogue_says(pytestconfig: pytest.Config, page: str, block: str) -> None:
    path = DOCS / page
    wanted = f"<!-- begin {block} -->\n{metric_table(of_hub=page == 'hub.md')}\n<!-- end {block} -->"
    if pytestconfig.getoption("--update-golden"):
        between = rf"<!-- begin {block} -->\n.*?<!-- end {block} -->"
        path.write_text(re.sub(between, lambda _: wanted, path.read_text("utf-8"), flags=re.DOTALL), "utf-8")
    assert wanted in path.read_text("utf-8"), "run `make golden` and read the diff"


@pytest.mark.parametrize("page", PAGES)
def test_metrics_that_are_named_exist(page: str) -> None:
    known = {metric.name for metric in CATALOGUE}
    named = set(re.findall(r"\bgputally_[a-z_]+", (DOCS / page).read_text("utf-8")))
    assert named
    wrong = {name for name in named if name not in known and not any(name.removesuffix(e) in known for e in ENDINGS)}
    assert wrong == set()


@pytest.mark.parametrize("page", PAGES)
def test_queries_are_understood_by_prometheus(promtool_bin: Path, tmp_path: Path, page: str) -> None:
    blocks = re.findall(r"```promql\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    queries = [line for block in blocks for line in block.splitlines()]
    assert queries
    rules = tmp_path / "rules.yml"
    lines = [f"      - {{record: 'a:b{number}', expr: '{query}'}}\n" for number, query in enumerate(queries)]
    rules.write_text(f"groups:\n  - name: docs\n    rules:\n{''.join(lines)}")
    done = subprocess.run([promtool_bin, "check", "rules", rules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_configuration_that_are_shown_exist(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    for verb in re.findall(r"gputally-agent (doctor|run|identify)\b", text):
        assert agent.parser().parse_args([verb]).verb == verb
    shown = re.findall(r"^(?:\S+/)?gputally (?:-C \S+ )?([a-z]+)", text, re.MULTILINE)
    assert set(shown) <= set(gputally.commands)
    for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
        tomllib.loads(block)
        parse_config(block)


def test_the_pod_that_is_shown_is_a_model_server() -> None:
    text = (DOCS / "agent.md").read_text("utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    shown = yaml.safe_load(block)
    pod = shown["spec"]["template"] | {"spec": {"nodeName": "n1"}, "status": {"phase": "Running", "podIP": "10.0.0.7"}}
    own = {"namespace": shown["metadata"]["namespace"], "name": "llama-70b-6d4b75cb6d-x2x9k", "uid": "u"}
    found = server_of_pod(pod | {"metadata": pod["metadata"] | own}, "n1")
    assert found
    assert (found.kind, found.url) == ("vllm", "http://10.0.0.7:8000/metrics")
    told = set(re.findall(r"`gputally\.io/(\w+)`", text))
    assert told == {"engine", "port", "path", "scheme", "role", "model"}
