"""The command line: what a published month prints, and what belongs on which stream."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from chargeback.build import build_period
from services.workspace import Workspace
from tests.month import load_month
from tests.program import PROGRAM, environment, gputally, newest_snapshot, refusal, said

ANSI = re.compile(r"\x1b\[")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with May 2026 published."""
    folder = load_month(tmp_path_factory.mktemp("built") / "ws")
    workspace = Workspace.at(folder)
    with workspace.open_lake() as lake:
        build_period(lake, workspace.config, "2026-05")
    return folder


def test_a_damaged_lake_is_one_line(built: Path, tmp_path: Path) -> None:
    ws = shutil.copytree(built, tmp_path / "ws")
    files = list((ws / "lake" / "data" / "main" / "statement_line").rglob("*.parquet"))
    assert files
    for path in files:
        path.unlink()
    assert refusal(gputally("-C", ws, "statement", "2026-05")).startswith("the lake cannot be read: ")


def test_a_statement_is_the_same_in_every_form(built: Path) -> None:
    rows = json.loads(said(gputally("-C", built, "statement", "2026-05", "--format", "json")))
    assert {(row["team"], row["category"], row["amount"]) for row in rows} == {
        ("ann", "held", "3600.00"),
        ("ann", "idle", "3840.00"),
    }
    table = said(gputally("-C", built, "statement", "2026-05")).splitlines()
    assert len(table) == 1 + len(rows) + 1
    assert re.fullmatch(r"total +5,952\.0 +7,440\.00", table[-1])
    done = subprocess.run(
        [PROGRAM, "-C", built, "statement", "2026-05", "--format", "csv"],
        capture_output=True, env=environment(), check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.count(b"\r\n") == 1 + len(rows)


def test_check_is_silent_when_well(built: Path) -> None:
    assert said(gputally("-C", built, "check", "2026-05")) == ""


def test_export_writes_two_files_and_names_them(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "finance"
    printed = said(gputally("-C", built, "export", "2026-05", "--out", out))
    assert printed == f"{out}/chargeback-2026-05.csv\n{out}/control-2026-05.json\n"
    assert sorted(path.name for path in out.iterdir()) == ["chargeback-2026-05.csv", "control-2026-05.json"]


def test_building_again_publishes_nothing(built: Path) -> None:
    before = newest_snapshot(built)
    printed = said(gputally("-C", built, "build", "2026-05"))
    assert re.match(r"2026-05 v1 \(build [0-9a-f]{16}\) unchanged since it was published: ", printed)
    assert newest_snapshot(built) == before


def test_a_period_without_anything_loaded_is_a_clear_outcome(built: Path) -> None:
    before = newest_snapshot(built)
    line = refusal(gputally("-C", built, "build", "2020-01"))
    assert line == "no charge of 2020-01 is loaded, nothing to build: run `gputally load charges FILE...`"
    assert newest_snapshot(built) == before


READERS = [
    ("statement", "2026-05"),
    ("statement", "2026-05", "--format", "json"),
    ("statement", "2026-05", "--format", "csv"),
    ("explain", "2026-05", "--team", "ann"),
    ("doctor",),
    ("--help",),
]


@pytest.mark.parametrize("arguments", READERS, ids=" ".join)
def test_a_reader_that_has_gone_is_no_reason_to_complain(built: Path, arguments: tuple[str, ...]) -> None:
    """As in `gputally ... | head`: the pipe is closed before the first line."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [PROGRAM, "-C", built, *arguments], stdout=writing, stderr=subprocess.PIPE, env=environment(), timeout=60,
            check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_disk_is_one_line(built: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, "-C", built, "statement", "2026-05"], stdout=full, stderr=subprocess.PIPE, env=environment(),
            timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, b"gputally: No space left on device\n")


@pytest.mark.parametrize("arguments", [*READERS[:5], ("build", "2026-05")], ids=" ".join)
def test_a_pipe_gets_plain_text_and_no_progress(built: Path, arguments: tuple[str, ...]) -> None:
    env = environment(TERM="xterm-256color", COLORTERM="truecolor")
    done = gputally("-C", built, *arguments, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert not ANSI.search(done.stdout)


def test_a_terminal_shows_progress_on_standard_error_only(built: Path, tmp_path: Path) -> None:
    ws = shutil.copytree(built, tmp_path / "ws")
    shutil.copy(ws / "holdings.csv", ws / "other.csv")
    with (ws / "other.csv").open("a") as stream:
        stream.write("2026-05-20T00:00:00Z,2026-05-21T00:00:00Z,8,n1,bob\n")
    out, err = on_terminal("-C", str(ws), "load", "holdings", str(ws / "holdings.csv"), str(ws / "other.csv"))
    assert "load holdings" in err
    assert ANSI.search(err)
    assert out == "holdings.csv: 1 rows, already loaded, nothing to do\nother.csv: 2 rows, loaded\n"


def on_terminal(*arguments: str) -> tuple[str, str]:
    """Run with a terminal as standard error and a pipe as standard output; return what came on each."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *arguments], stdin=end, stdout=subprocess.PIPE, stderr=end, env=environment(TERM="xterm")
    )
    os.close(end)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        shown += part
    out, _ = process.communicate(timeout=60)
    os.close(terminal)
    assert process.returncode == 0, shown
    return out.decode(), shown.decode()
