"""Run the installed `gputally` as a user does, and judge what a refusal looks like."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from click.testing import CliRunner

from services.commands import gputally as program
from services.workspace import Workspace, create

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = Path(sysconfig.get_path("scripts")) / "gputally"
Done = subprocess.CompletedProcess[str]


def environment(**changes: str) -> dict[str, str]:
    """The environment of a plain terminal session, 100 columns wide."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return kept | {"LANG": "C.UTF-8", "COLUMNS": "100"} | changes


def gputally(*arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
    """Run to the end; no run may show a stack trace, whatever it was asked for."""
    command = [str(PROGRAM), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=cwd, env=env or environment()
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def printed(*arguments: object) -> str:
    """What a command that must succeed printed, run in this process: as the program, without its start-up."""
    done = CliRunner().invoke(program, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout_bytes.decode()


def said(done: Done) -> str:
    """What a run that must succeed printed."""
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def refusal(done: Done) -> str:
    """The single line of a run that must be refused: exit code 1, nothing on standard output."""
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.startswith("gputally: ")
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("gputally: ").rstrip("\n")


def new_workspace(folder: Path) -> Path:
    """A workspace with nothing loaded."""
    create(folder)
    return folder


def newest_snapshot(folder: Path) -> int:
    """The lake's newest snapshot, 0 without a lake: a refused command leaves it as it was."""
    workspace = Workspace.at(folder)
    if not workspace.catalog.exists():
        return 0
    with workspace.open_lake(read_only=True) as lake:
        return lake.snapshot()


def refused(ws: Path, kind: str, *arguments: str | Path) -> str:
    """The line that refuses a load, after seeing that it changed nothing."""
    before = newest_snapshot(ws)
    line = refusal(gputally("-C", ws, "load", kind, *arguments))
    assert newest_snapshot(ws) == before
    return line
