"""What happens to the process, the disk and the file costs no more than it must, and is counted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from exporters.spool import Spool
from exporters.spool_file import SpoolError
from tests.exporters.spooling import append, sequences

ROOT = Path(__file__).parents[2]
WRITER = [sys.executable, "-m", "tests.exporters.spool_writer"]


def filled(path: Path) -> None:
    """More than SQLite keeps in memory."""
    spool = Spool(path, 10_000_000)
    for _ in range(400):
        append(spool, size=5_000)
    spool.close()


def test_garbage_is_set_aside_and_a_new_spool_begun(tmp_path: Path) -> None:
    (tmp_path / "spool").write_bytes(random.Random(1).randbytes(100_000))
    spool = Spool(tmp_path / "spool", 1_000_000)
    assert append(spool) == 1
    assert spool.status.failed_events == {"spool_corrupt": 1}
    (aside,) = tmp_path.glob("spool.corrupt-*")
    assert aside.stat().st_size == 100_000
    spool.close()


def test_a_damaged_spool_is_set_aside_under_a_new_id_and_counted_once(tmp_path: Path) -> None:
    filled(tmp_path / "spool")
    content = bytearray((tmp_path / "spool").read_bytes())
    content[4096 : 12 * 4096] = random.Random(2).randbytes(11 * 4096)
    (tmp_path / "spool").write_bytes(content)
    spool = Spool(tmp_path / "spool", 1_000_000)
    assert sequences(spool) == []
    spool.close()
    again = Spool(tmp_path / "spool", 1_000_000)
    assert again.status.failed_events == {"spool_corrupt": 1}
    assert again.status.spool_id == spool.status.spool_id
    again.close()


def test_earlier_damaged_files_do_not_pile_up(tmp_path: Path) -> None:
    for _ in range(3):
        (tmp_path / "spool").write_bytes(b"no database " * 1_000)
        Spool(tmp_path / "spool", 1_000_000).close()
    assert len(list(tmp_path.glob("spool.corrupt-*"))) == 1


def test_damage_found_while_running_costs_one_call(tmp_path: Path) -> None:
    filled(tmp_path / "spool")
    spool = Spool(tmp_path / "spool", 10_000_000)
    before = spool.status.spool_id
    with (tmp_path / "spool").open("r+b") as file:
        file.seek(4096)
        file.write(random.Random(3).randbytes(400 * 4096))
    with pytest.raises(SpoolError, match="cannot be used"):
        sequences(spool)
    assert append(spool) == 1
    assert spool.status.spool_id != before
    assert spool.status.failed_events == {"spool_corrupt": 1}
    spool.close()


def test_a_full_disk_fails_the_append_and_is_counted(tmp_path: Path) -> None:
    """The system's own limit on the size of a file stands in for a full disk: the write itself fails."""
    done = subprocess.run(
        [*WRITER, str(tmp_path / "spool"), "3000000"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    *told, last = done.stdout.splitlines()
    assert last.startswith("full ")
    assert "cannot be used" in last
    assert last.endswith("{'spool_failed': 1}")
    spool = Spool(tmp_path / "spool", 50_000_000)
    assert len(sequences(spool)) == len(told) > 10
    assert spool.state_get("window") == len(told)
    assert append(spool) == len(told) + 1
    spool.close()


def test_killed_at_any_moment_no_batch_is_torn_and_no_sequence_reused(tmp_path: Path) -> None:
    """State and batch are one: as many windows as batches, each whole, after every kill."""
    pauses, told_before = random.Random(4), 0
    for _ in range(12):
        with subprocess.Popen(
            [*WRITER, str(tmp_path / "spool")], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline()]  # it runs
            threading.Timer(pauses.uniform(0.0, 0.1), os.kill, (writer.pid, signal.SIGKILL)).start()
            lines += writer.stdout.read().splitlines()
        told = [tuple(map(int, line.split())) for line in lines]  # a line is one write, so none is cut
        spool = Spool(tmp_path / "spool", 50_000_000)
        found = spool.next_batches(0, 100_000)
        assert [b.sequence for b in found] == list(range(1, len(found) + 1))
        assert all(b.payload == f"{spool.status.spool_id}:{b.sequence}:".encode() * 400 for b in found)
        assert spool.state_get("window") == len(found)
        assert told[0] == (told_before + 1, told_before + 1)
        assert len(found) >= told[-1][0]
        told_before = len(found)
        assert spool.status.failed_events == {}
        spool.close()
