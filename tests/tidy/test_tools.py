"""Linters and types are tests too, so that one command judges everything."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.tidy.files import PACKAGES, PYPROJECT, ROOT

SCRIPTS = Path(sysconfig.get_path("scripts"))
TOOLS = [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"], ["lint-imports"]]


@pytest.mark.parametrize("command", TOOLS, ids=" ".join)
def test_tool_is_content(command: list[str]) -> None:
    done = subprocess.run(
        [SCRIPTS / command[0], *command[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"


def test_every_list_of_packages_is_the_same() -> None:
    """A package that one tool does not know is a package that it does not check."""
    tool = PYPROJECT["tool"]
    found = tool["setuptools"]["packages"]["find"]["include"]
    assert set(found) == {*PACKAGES, *(f"{name}.*" for name in PACKAGES)}
    assert set(tool["mypy"]["files"]) == set(PACKAGES)
    contracts = {contract["id"]: contract for contract in tool["importlinter"]["contracts"]}
    layered = {name.strip() for layer in contracts["layers"]["layers"] for name in layer.split("|")}
    assert layered == set(contracts["acyclic"]["ancestors"]) == set(PACKAGES)
