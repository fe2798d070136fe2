"""The agent says who it is, and stays small."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from services import agent

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = ("duckdb", "duckdb_extensions", "numpy", "pandas", "pyarrow", "streamlit", "click", "rich", "store")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "services.agent", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_identify_prints_one_json_line_and_nothing_else() -> None:
    done = run("identify")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    identity = json.loads(done.stdout)
    assert list(identity) == ["node", "boot_id", "os", "python"]
    assert identity["python"] == platform.python_version()
    assert identity["node"] == platform.node()


def test_boot_id_is_read_as_a_uuid(tmp_path: Path) -> None:
    page = tmp_path / "boot_id"
    page.write_text("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\n")
    assert agent.read_boot_id(page) == "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


@pytest.mark.parametrize("content", [None, "", "not an id\n", "\u00e9"], ids=["absent", "empty", "text", "bytes"])
def test_an_unknown_boot_id_is_null_never_a_made_up_one(tmp_path: Path, content: str | None) -> None:
    page = tmp_path / "boot_id"
    if content is not None:
        page.write_text(content, encoding="utf-8")
    assert agent.identify(page)["boot_id"] is None


def test_version_names_the_program_and_the_installed_version() -> None:
    done = run("--version")
    assert done.stdout.strip() == f"gputally-agent {agent.version()}"


@pytest.mark.parametrize("arguments", [(), ("frobnicate",)], ids=["no verb", "unknown verb"])
def test_a_wrong_command_line_is_refused_with_usage(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage: gputally-agent" in done.stderr
    assert done.stdout == ""


def test_importing_the_agent_loads_no_database_and_no_data_frame() -> None:
    code = "import json, sys, services.agent; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert set(HEAVY).isdisjoint(json.loads(done.stdout))
