"""The shell scripts behind make say in one line what is missing, and never stop a test run for a program."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.tidy.files import ROOT

if TYPE_CHECKING:
    from pathlib import Path

# What the scripts themselves need, without any Python.
TOOLS = ("dirname", "env", "id", "rm")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder to stand for PATH, with the few tools that the scripts use."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(shutil.which(tool) or pytest.fail(f"this machine has no {tool}"))
    return folder


def program(place: Path, text: str) -> Path:
    place.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    place.chmod(0o755)
    return place


def run(script: str, *arguments: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / script), *arguments],
        env={"PATH": str(path), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_without_python_the_way_to_get_it_is_told(path: Path, tmp_path: Path) -> None:
    done = run("make-venv", str(tmp_path / "venv"), path=path)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_old_python_is_refused_by_name(path: Path, tmp_path: Path) -> None:
    old = program(path / "python3.10", "exit 1")
    done = run("make-venv", str(tmp_path / "venv"), path=path, PYTHON=str(old))
    assert (done.returncode, done.stderr) == (1, f"PYTHON={old} is not Python 3.11 or newer.\n")


def test_a_python_without_venv_names_its_package(path: Path, tmp_path: Path) -> None:
    lacks_venv = 'case "$2" in *ensurepip*) exit 1 ;; *print*) echo 3.12 ;; esac'
    program(path / "python3.12", lacks_venv)
    done = run("make-venv", str(tmp_path / "venv"), path=path)
    assert done.returncode == 1
    assert "apt-get install python3.12-venv" in done.stderr


def test_an_environment_that_works_is_kept(path: Path, tmp_path: Path) -> None:
    program(path / "python3", "exit 0")
    (tmp_path / "venv/bin").mkdir(parents=True)
    program(tmp_path / "venv/bin/python", "exit 0")
    assert run("make-venv", str(tmp_path / "venv"), path=path).returncode == 0
    assert (tmp_path / "venv/bin/python").exists()


def test_parts_are_installed_one_by_one_and_a_refusal_stops_nothing(path: Path, tmp_path: Path) -> None:
    """As root, or as a user with sudo: one package that apt refuses does not keep the others out."""
    log = tmp_path / "log"
    python = program(tmp_path / "python", '[ "$2" = apt ] && echo "chromium prometheus" || echo "needs chromium: x"')
    program(path / "apt-get", f'echo "$*" >>{log}\ncase "$*" in *chromium*) exit 100 ;; esac')
    program(path / "sudo", 'shift; exec "$@"')
    done = run("install-parts", path=path, PYTHON=str(python))
    assert done.returncode == 0, done.stderr
    asked = log.read_text(encoding="utf-8").splitlines()
    assert [line.split()[-1] for line in asked] == ["-qq", "chromium", "prometheus"]
    assert asked[0].startswith("update")
    assert "apt-get install chromium failed" in done.stderr
    assert "needs chromium" in done.stdout


def test_where_apt_is_not_what_is_missing_is_only_told(path: Path, tmp_path: Path) -> None:
    python = program(tmp_path / "python", '[ "$2" = apt ] && echo "chromium" || echo "needs chromium: x"')
    done = run("install-parts", path=path, PYTHON=str(python))
    assert (done.returncode, done.stdout, done.stderr) == (0, "needs chromium: x\n", "")


def test_with_all_parts_nothing_is_asked_of_apt(path: Path, tmp_path: Path) -> None:
    program(path / "apt-get", f"touch {tmp_path / 'asked'}")
    done = run("install-parts", path=path, PYTHON=str(program(tmp_path / "python", "echo")))
    assert (done.returncode, done.stdout) == (0, "")
    assert not (tmp_path / "asked").exists()
