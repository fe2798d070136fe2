"""Agents and their hub, killed again and again under load: every batch that was spooled is in the lake, once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exporters.spool import Spool
from tests.e2e.spooling_agent import row_count
from tests.services.hub import hubs

ROOT = Path(__file__).parents[2]
LOAD_SECONDS = float(os.environ.get("GPUTALLY_KILL_SECONDS", "20"))
"""GPUTALLY_KILL_SECONDS=60 is the long form of this test."""
AGENTS = 8


class Agents:
    """Processes that spool and push; one that is killed is started again on its spool."""

    def __init__(self, folder: Path, address: str, until: float) -> None:
        self.folder, self.address, self.until = folder, address, until
        self.nodes = [f"n{number}" for number in range(AGENTS)]
        self.kills = 0
        self._processes = {node: self._start(node) for node in self.nodes}

    def kill(self, node: str) -> None:
        self._processes[node].kill()
        self._processes[node].wait(10)
        self.kills += 1
        self._processes[node] = self._start(node)

    def end(self) -> list[int]:
        """Wait until each has drained; their exit statuses."""
        return [process.wait(timeout=180) for process in self._processes.values()]

    def stop(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait(10)

    def told(self, node: str) -> list[int]:
        """The sequences of batches that were on disk, as the agent noted; a line that was cut short is none."""
        return [int(line) for line in (self.folder / f"{node}.told").read_text().split("\n")[:-1]]

    def _start(self, node: str) -> subprocess.Popen[bytes]:
        module = [sys.executable, "-m", "tests.e2e.spooling_agent"]
        return subprocess.Popen([*module, str(self.folder), node, self.address, str(self.until)], cwd=ROOT)


def stored(folder: Path) -> dict[str, dict[int, int]]:
    """How many rows of each batch of each node the lake holds."""
    found: dict[str, dict[int, int]] = {}
    query = (
        "SELECT n.node, w.energy_millijoules, count(*) FROM lake.device_window AS w JOIN lake.device_number AS n "
        "ON n.device_no = w.dh // 24 GROUP BY ALL"
    )
    for node, sequence, count in hubs.rows(folder, query):
        found.setdefault(node, {})[sequence] = count
    return found


@pytest.mark.slow
def test_dcgm_exporter_292_restarts_of_both_ends_lose_no_batch_and_store_none_twice(tmp_path: Path) -> None:
    chance = random.Random(3)
    workspace = hubs.workspace(tmp_path / "workspace")
    hub = hubs.start(workspace)
    hubs.workspace(workspace, listen=hub.address)  # the same address again after each kill
    until = time.time() + LOAD_SECONDS
    agents, hub_kills = Agents(tmp_path, hub.address, until), 0
    try:
        while time.time() < until - 2:
            time.sleep(chance.uniform(0.2, 1.5))
            for node in chance.sample(agents.nodes, chance.randint(0, 3)):
                agents.kill(node)
            if chance.random() < 0.5:
                hub.kill()
                hub_kills += 1
                hub = hubs.start(workspace)
        assert agents.end() == [0] * AGENTS
        assert hub.stop() == 0
    finally:
        agents.stop()
        hub.process.kill()
    found = stored(workspace)
    total = sum(map(len, found.values()))
    sys.stderr.write(f"{agents.kills} kills of agents, {hub_kills} of the hub, {total} batches\n")
    assert agents.kills >= 3
    assert hub_kills >= 2
    for node in agents.nodes:
        spool = Spool(tmp_path / f"{node}.sqlite", 1 << 30)
        status = spool.status
        spool.close()
        told = agents.told(node)
        assert len(told) == len(set(told)), "a sequence was given twice"
        # Killed between the commit and the line that tells of it, a batch is spooled and not told: the spool knows.
        assert set(told) <= set(found[node])
        assert found[node] == {sequence: row_count(sequence) for sequence in range(1, status.newest_sequence + 1)}
        assert (status.batch_count, status.dropped_batches) == (0, {})
        assert status.acked_batches == status.newest_sequence
