"""What an agent is made of, and what it takes over from the one before it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from fleet.agent_config import Agent
from services.agent.assembly import STATE_KEY, NodeAgent
from tests.e2e.live_agents import NOWHERE, rows_of
from tests.services.agent.fed import BOOTS, Fed

if TYPE_CHECKING:
    from pathlib import Path

START = 1_800_000_000


def energy_mj(agent: Fed, since: int) -> int:
    """What the agent has spooled of the meter, in batches after a sequence."""
    rows = rows_of(one.payload for one in agent.spool.next_batches(since, 1000))
    return sum(row["energy_millijoules"] or 0 for row in rows.get("device_window", ()))


def gone_on(folder: Path, change: dict[str, Any] | list[int]) -> tuple[Fed, int]:
    """An agent after another one whose state was changed; and the sequence at which it begins."""
    before = Fed(folder / "spool.sqlite", NOWHERE, BOOTS[0])
    before.watch(START, 30, {"GPU-a": 1_000})
    state = before.saved | change if isinstance(change, dict) else change
    before.spool.state_put(STATE_KEY, json.loads(json.dumps(state)))
    since = before.spool.status.newest_sequence
    before.end()
    after = Fed(folder / "spool.sqlite", NOWHERE, BOOTS[0])
    after.watch(START + 60, 30, {"GPU-a": 7_000})
    return after, since


def test_the_next_agent_bridges_what_the_meter_added_meanwhile(tmp_path: Path) -> None:
    after, since = gone_on(tmp_path, {})
    assert energy_mj(after, since) == 6_000
    after.end()


@pytest.mark.parametrize(
    "change",
    [
        {"saved_at_second": int(time.time()) + 3600},
        {"boot_id": BOOTS[1]},
        {"windows": {"version": 99}},
        {"windows": "text", "holdings": [1]},
        [1, 2],
    ],
    ids=["of the future", "of another boot", "of another version", "damaged", "no state"],
)
def test_a_state_that_cannot_be_gone_on_from_bridges_nothing_and_stops_nobody(
    tmp_path: Path, change: dict[str, Any] | list[int]
) -> None:
    """A clock that ran ahead would else leave the agent blind until time catches up."""
    after, since = gone_on(tmp_path, change)
    assert energy_mj(after, since) == 3_000
    assert after.series("agent_expected_gpus") == {(): 1}
    after.end()


def test_without_a_hub_there_is_no_spool(tmp_path: Path) -> None:
    config = Agent(kubelet_socket="", kernel_log="", processes=False, spool=str(tmp_path / "spool.sqlite"))
    agent = NodeAgent(config, "n1", BOOTS[0], "1")
    assert not any(m.metric.name.startswith("gputally_push") for m in agent.measurements())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "collectors"),
    [
        ({}, {"nvml", "placement", "kernel_log"}),
        ({"kubelet_socket": ""}, {"nvml", "kernel_log"}),
        ({"kernel_log": "", "devices": "dcgm", "dcgm_url": "http://127.0.0.1:9/metrics"}, {"dcgm", "placement"}),
    ],
    ids=["all", "no Kubernetes", "dcgm-exporter"],
)
def test_the_collectors_are_those_of_the_configuration(settings: dict[str, Any], collectors: set[str]) -> None:
    agent = NodeAgent(Agent(**settings), "n1", BOOTS[0], "1")
    shown = {m.labels[1] for m in agent.measurements() if m.metric.name == "gputally_collector_replaced_events_total"}
    assert shown == collectors
