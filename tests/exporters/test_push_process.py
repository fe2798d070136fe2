"""An agent process that is killed while it spools and pushes, and one whose hub does not come back."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from exporters.spool import Spool
from tests.exporters.pusher import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.exporters.hub import Hub

ROOT = Path(__file__).parents[2]
PUSHER = [sys.executable, "-m", "tests.exporters.pusher"]


def test_dcgm_exporter_536_restarts_lose_and_double_nothing(tmp_path: Path, new_hub: Callable[..., Hub]) -> None:
    """Killed again and again, every batch that was on disk is at the hub once, with its own rows."""
    hub, pauses = new_hub(), random.Random(5)
    command = [*PUSHER, str(tmp_path / "spool"), "50000000", str(hub.port)]
    told: dict[int, int] = {}
    for kill in range(8):
        with subprocess.Popen(
            [*command, "0" if kill < 7 else "50"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as pusher:
            assert pusher.stdout is not None
            lines = [pusher.stdout.readline()]
            if kill < 7:
                threading.Timer(pauses.uniform(0.0, 0.4), os.kill, (pusher.pid, signal.SIGKILL)).start()
            lines += pusher.stdout.read().splitlines()
        assert pusher.returncode == (-signal.SIGKILL if kill < 7 else 0)
        for sequence, row_count, *_ in (map(int, line.split()) for line in lines):
            assert sequence not in told, "a sequence was given twice"
            told[sequence] = row_count
    found = {key[2]: batch.tables[0] for key, batch in hub.stored.items()}
    assert len(hub.stored) == len(found)
    # Killed between the commit and the line that tells of it: there, and not told.
    assert told.keys() <= found.keys()
    assert sorted(found) == list(range(1, max(told) + 1))
    for sequence, table in found.items():
        uids = pa.ipc.open_stream(table.arrow_stream).read_all().column("pod_uid").to_pylist()
        assert uids == [row.pod_uid for row in rows(sequence)]
        assert table.row_count == told.get(sequence, table.row_count) == len(uids)
    spool = Spool(tmp_path / "spool", 50_000_000)
    assert spool.status.batch_count == 0
    # An answer that the agent did not live to note comes again, and counts when it is noted.
    assert spool.status.acked_batches == len(found)
    spool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads its memory from /proc")
def test_a_hub_away_for_longer_than_the_spool_holds_costs_the_oldest_and_no_memory(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [*PUSHER, str(tmp_path / "spool"), "1000000", str(port), "2000"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as pusher:
        assert pusher.stdout is not None
        lines = [list(map(int, pusher.stdout.readline().split())) for _ in range(2000)]
        pusher.kill()
    memory = [line[2] for line in lines if len(line) == 4]
    threads = [line[3] for line in lines if len(line) == 4]
    assert max(memory[5:]) - memory[4] < 3_000, memory
    assert max(threads) <= 6, threads
    spool = Spool(tmp_path / "spool", 1_000_000)
    status = spool.status
    assert status.dropped_batches["spool_full"] + status.batch_count == 2000
    assert [spooled.sequence for spooled in spool.next_batches(0, 10_000)][-1] == 2000
    assert 900_000 < status.payload_bytes <= 1_000_000
    spool.close()
