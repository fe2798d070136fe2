"""The shared test tools do what they promise: parts, golden files, locks on skipping."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests import parts
from tests.tidy.files import ROOT

if TYPE_CHECKING:
    from pathlib import Path

ASKS_FOR_A_PART = "def test_it(promtool_bin):\n    assert promtool_bin.name == 'promtool'\n"
COMPARES = "def test_it(golden):\n    golden('{page}', 'new\\n')\n"


def pytest_run(folder: Path, text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one test file with the project's conftest, in a process of its own."""
    test = folder / "test_sample.py"
    test.write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
    ]
    env = {name: value for name, value in os.environ.items() if name not in {"REQUIRE_ALL", "CI"}}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what is tested is in conftest.py
    return subprocess.run(
        [*command, "--rootdir", str(folder), str(test), *arguments],
        cwd=ROOT,
        env={**env, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_missing_part_skips_and_is_named(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, ASKS_FOR_A_PART, PATH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 skipped" in done.stdout
    assert "real parts that are missing here" in done.stdout
    assert "needs promtool: apt-get install prometheus (macOS: brew install prometheus)" in done.stdout


def test_a_missing_part_fails_where_all_are_required(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, ASKS_FOR_A_PART, PATH=str(tmp_path), REQUIRE_ALL="1")
    assert done.returncode == 1
    assert "may not be skipped" in done.stdout
    assert "needs promtool: apt-get install prometheus" in done.stdout


def test_a_present_part_is_handed_over(tmp_path: Path) -> None:
    (tmp_path / "promtool").touch(mode=0o755)
    done = pytest_run(tmp_path, ASKS_FOR_A_PART, PATH=str(tmp_path), REQUIRE_ALL="1")
    assert done.returncode == 0, done.stdout
    assert "missing here" not in done.stdout


def test_the_newest_of_several_versions_is_taken(tmp_path: Path) -> None:
    for version in ("9", "15", "16"):
        (tmp_path / version / "bin").mkdir(parents=True)
    for version in ("9", "15"):
        (tmp_path / version / "bin" / "sample-server").touch(mode=0o755)
    part = parts.Part(("sample-server",), "sample", "sample", (f"{tmp_path}/*/bin",))
    assert part.find() == tmp_path / "15" / "bin" / "sample-server"


def test_a_golden_file_is_compared_and_rewritten(tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_text("old\n", encoding="utf-8")
    text = COMPARES.format(page=page)  # an absolute name stands for itself
    differs = pytest_run(tmp_path, text)
    assert differs.returncode == 1
    assert "-old" in differs.stdout
    assert "+new" in differs.stdout
    assert "make golden" in differs.stdout
    assert pytest_run(tmp_path, text, "--update-golden").returncode == 0
    assert page.read_text(encoding="utf-8") == "new\n"
    assert pytest_run(tmp_path, text).returncode == 0


@pytest.mark.parametrize("name", parts.PARTS)
def test_advice_names_a_package_for_both_systems(name: str) -> None:
    assert "apt-get install " in parts.advice(name)
    assert "brew install " in parts.advice(name)
