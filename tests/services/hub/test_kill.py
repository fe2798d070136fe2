"""A hub that is killed again and again under load loses nothing that it acknowledged and stores nothing twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.services.hub.hubs import rows, start, workspace

ROOT = Path(__file__).parents[3]
LOAD_SECONDS = float(os.environ.get("HUB_KILL_SECONDS", "20"))
"""HUB_KILL_SECONDS=60 is the long form of this test."""
AGENTS = 8


def stored(folder: Path) -> dict[str, dict[int, int]]:
    """How many rows each sequence of each node has; a batch's rows carry its sequence as their busy time."""
    found: dict[str, dict[int, int]] = {}
    query = (
        "SELECT n.node, w.busy_ms, count(*) FROM lake.device_window AS w JOIN lake.device_number AS n "
        "ON n.device_no = w.dh // 24 GROUP BY ALL"
    )
    for node, sequence, count in rows(folder, query):
        found.setdefault(node, {})[sequence] = count
    return found


def acked(folder: Path, node: str) -> list[int]:
    path = folder / f"{node}.acked"
    return [int(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


@pytest.mark.slow
def test_kill_9_under_load_loses_no_acknowledged_batch_and_stores_none_twice(tmp_path: Path) -> None:
    chance = random.Random(7)
    hub = start(workspace(tmp_path / "ws"))
    # The same port again after each kill, as senders know it.
    workspace(tmp_path / "ws", listen=hub.address)
    nodes = [f"n{number}" for number in range(AGENTS)]
    senders = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.services.hub.sender", hub.address, node, str(tmp_path), str(LOAD_SECONDS)],
            cwd=ROOT,
        )
        for node in nodes
    ]
    kills = 0
    until = time.monotonic() + LOAD_SECONDS
    while time.monotonic() < until:
        # From before the first commit of a hub's life to well into its work.
        time.sleep(chance.uniform(0.0, 3.0))
        hub.kill()
        kills += 1
        promised = {node: acked(tmp_path, node) for node in nodes}
        found = stored(tmp_path / "ws")
        for node in nodes:
            assert set(promised[node]) <= set(found.get(node, {})), f"{node}: acknowledged and not in the lake"
            assert set(found.get(node, {}).values()) <= {2}, f"{node}: a batch in part or twice"
        hub = start(tmp_path / "ws")
    assert [sender.wait(timeout=120) for sender in senders] == [0] * AGENTS
    made = {node: int((tmp_path / f"{node}.made").read_text()) for node in nodes}
    found = stored(tmp_path / "ws")
    assert hub.stop() == 0

    assert kills >= 3
    assert min(made.values()) > 10, "a sender starved"
    assert found == {node: dict.fromkeys(range(count), 2) for node, count in made.items()}
    assert {node: sorted(acked(tmp_path, node)) for node in nodes} == {node: list(range(n)) for node, n in made.items()}
