"""The images are built from what is locked, and start programs that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

from fleet.address import split_address
from fleet.config import parse_config
from services import agent
from services.commands import gputally
from tests.deploy.manifests import DEPLOY, container, one, pod_of

TEXT = (DEPLOY / "Dockerfile").read_text("utf-8")
ROOT = Path(__file__).parents[2]
STAGES = {name: base for base, name in re.findall(r"^FROM (\S+) AS (\S+)$", TEXT, re.MULTILINE)}


def stage(name: str) -> str:
    """The lines of one stage."""
    found = re.search(rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def ports(name: str) -> set[int]:
    return {int(port) for line in re.findall(r"^EXPOSE (.*)$", stage(name), re.MULTILINE) for port in line.split()}


def command(name: str) -> list[str]:
    parts: list[str] = []
    for word in ("ENTRYPOINT", "CMD"):
        found = re.search(rf"^{word} (\[.*\])$", stage(name), re.MULTILINE)
        assert found
        parts += json.loads(found[1])
    return parts


def test_every_stage_has_a_name_and_a_fixed_base() -> None:
    lines = re.findall(r"^FROM .*$", TEXT, re.MULTILINE)
    assert len(lines) == len(STAGES), "a stage without a name"
    for base in STAGES.values():
        assert base in STAGES or (":" in base and not base.endswith(":latest"))


def test_only_what_is_locked_is_installed() -> None:
    installs = re.findall(r"^RUN pip install (.*)$", TEXT, re.MULTILINE)
    for arguments in installs:
        lock = re.search(r"--require-hashes -r (\S+)", arguments)
        assert lock or "--no-deps --no-build-isolation ." in arguments
        if lock:
            assert (ROOT / lock[1]).is_file()
    assert len(installs) == 4


def test_python_is_one_that_the_project_supports() -> None:
    versions = set(re.findall(r"^FROM python:(\d+\.\d+)-", TEXT, re.MULTILINE))
    assert versions == {"3.11"}


def test_the_hub_is_not_root() -> None:
    user = re.search(r"^USER (\d+)$", stage("hub"), re.MULTILINE)
    assert user
    assert int(user[1]) == pod_of("StatefulSet", "gputally-hub")["securityContext"]["runAsUser"] != 0


def test_ports_are_those_of_the_manifests() -> None:
    told = parse_config(one("ConfigMap", "gputally-agent")["data"]["gputally.toml"]).agent.page.listen
    assert ports("agent") == {split_address(told)[1]}
    hub = container(pod_of("StatefulSet", "gputally-hub"), "hub")
    assert ports("hub") == {each["containerPort"] for each in hub["ports"]}


def test_commands_exist() -> None:
    program, *arguments = command("agent")
    assert program == "gputally-agent"
    assert agent.parser().parse_args(arguments).verb == "run"
    program, option, folder, verb = command("hub")
    assert (program, option) == ("gputally", "-C")
    assert verb in gputally.commands
    hub = container(pod_of("StatefulSet", "gputally-hub"), "hub")
    assert folder in {mount["mountPath"] for mount in hub["volumeMounts"]}
