"""Several processes on one lake at once, and one that is killed: nothing lost, nothing twice, nothing raised."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from store.migrations import schema_files
from tests.store.worker import ROWS_PER_BATCH, acknowledged, make_table, open_lake

ROOT = Path(__file__).parents[2]
STRESS_SECONDS = 30
KILLS = 6


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.worker", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], seconds: float) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def batches(folder: Path) -> dict[str, int]:
    with open_lake(folder, read_only=True) as lake:
        return dict(lake.connection.execute("SELECT batch, count(*) FROM lake.batch GROUP BY batch").fetchall())


@pytest.mark.slow
def test_two_writers_and_two_readers_lose_nothing_and_raise_nothing(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        lake.write(make_table)
    until = time.time() + STRESS_SECONDS
    acks = [tmp_path / "a.ack", tmp_path / "b.ack"]
    writers = [start("write", tmp_path, ack.stem, ack, until, 1_000_000) for ack in acks]
    readers = [start("read", tmp_path, until) for _ in range(2)]

    ends = [finish(process, STRESS_SECONDS + 90) for process in (*writers, *readers)]

    assert ends == [(0, "", "")] * 4
    written = [batch for ack in acks for batch in acknowledged(ack)]
    assert all(len(acknowledged(ack)) > 10 for ack in acks), "a writer starved"
    assert batches(tmp_path) == dict.fromkeys(written, ROWS_PER_BATCH)


@pytest.mark.slow
def test_a_killed_writer_loses_no_acknowledged_batch_and_resending_doubles_none(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        lake.write(make_table)
    ack = tmp_path / "w.ack"
    total = 3 * KILLS + 3
    for kill in range(KILLS):
        writer = start("write", tmp_path, "w", ack, time.time() + 600, total)
        wanted = 3 * (kill + 1)
        deadline = time.monotonic() + 60
        while len(acknowledged(ack)) < wanted and writer.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        assert writer.poll() is None, "the writer ended before it could be killed"
        # Another point of the next transaction each time: at once, 8 ms into it, 16 ms, ...
        time.sleep(kill * 0.008)
        writer.kill()
        finish(writer, 60)
        acked, found = acknowledged(ack), batches(tmp_path)
        assert len(acked) >= wanted
        assert set(acked) <= set(found)
        assert set(found.values()) == {ROWS_PER_BATCH}

    assert finish(start("write", tmp_path, "w", ack, time.time() + 600, total), 120) == (0, "", "")

    assert batches(tmp_path) == {f"w-{number}": ROWS_PER_BATCH for number in range(total)}


def test_processes_that_open_a_new_lake_at_once_make_it_once(tmp_path: Path) -> None:
    processes = [start("open", tmp_path) for _ in range(3)]
    assert [finish(process, 120) for process in processes] == [(0, "", "")] * 3
    with open_lake(tmp_path, read_only=True) as lake:
        applied = lake.connection.execute("SELECT version, name FROM lake.schema_version ORDER BY version").fetchall()
    assert applied == [(number, name) for number, name, _ in schema_files()]
