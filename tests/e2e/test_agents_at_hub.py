"""Agents and a real hub: two machines with one name, and a machine that comes back from a boot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.services.agent.fed import BOOTS, Fed
from tests.services.hub import hubs
from tests.services.hub.hubs import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.services.hub.hubs import Hub


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with hubs.running(tmp_path / "workspace") as running:
        yield running


def some_minutes_ago() -> int:
    return int(time.time()) // 60 * 60 - 600


def test_two_machines_with_one_name_are_told_and_nothing_of_either_is_lost(tmp_path: Path, hub: Hub) -> None:
    """The second keeps its rows and delivers them when the first has gone."""
    start = some_minutes_ago()
    first = Fed(tmp_path / "first.sqlite", hub.address, BOOTS[0], "twin")
    second = Fed(tmp_path / "second.sqlite", hub.address, BOOTS[1], "twin")
    first.watch(start, 60, {"GPU-a": 1_000})
    second.watch(start, 60, {"GPU-b": 1_000})
    kept = second.spool.status.batch_count
    first.push.start()
    wait_until(lambda: first.spool.status.batch_count == 0)
    second.push.start()
    wait_until(lambda: second.series("push_failed_events_total").get(("duplicate_node",), 0) > 2)
    assert second.series("push_acked_batches_total") == {(): 0}
    assert second.series("push_spooled_batches") == {(): kept}
    assert second.series("push_dropped_batches_total") == {}
    assert hub.metric('gputally_hub_refused_batches_total{reason="duplicate_node"}') > 2
    query = (
        "SELECT device, sum(energy_millijoules) FROM lake.device_window JOIN lake.device_number ON device_no = dh // 24"
    )
    assert hubs.rows(hub.folder, f"{query} GROUP BY 1") == [("GPU-a", 6_000)]
    first.end()
    wait_until(lambda: second.spool.status.batch_count == 0)
    assert second.series("push_acked_batches_total") == {(): kept}
    assert hubs.rows(hub.folder, f"{query} GROUP BY 1 ORDER BY 1") == [("GPU-a", 6_000), ("GPU-b", 6_000)]
    second.end()


def test_a_machine_that_boots_delivers_what_it_had_and_begins_anew(tmp_path: Path, hub: Hub) -> None:
    """Meters begin at nothing and nothing is bridged, but a GPU that does not come back is missed."""
    start = some_minutes_ago()
    before = Fed(tmp_path / "spool.sqlite", hub.address, BOOTS[0], "n1")
    before.watch(start, 90, {"GPU-a": 7_000_000, "GPU-b": 7_000_000})
    left = before.spool.status.batch_count
    before.end()
    after = Fed(tmp_path / "spool.sqlite", hub.address, BOOTS[1], "n1")
    assert after.spool.status.batch_count == left > 0
    after.watch(start + 300, 30, {"GPU-a": 0})
    assert (after.series("agent_expected_gpus"), after.series("agent_seen_gpus")) == ({(): 2}, {(): 1})
    assert ("GPU-b", "lost") in after.series("device_state_info")
    assert after.series("device_reset_events_total")[("GPU-a",)] == 0
    after.push.start()
    wait_until(lambda: after.spool.status.batch_count == 0)
    after.end()
    found = hubs.rows(
        hub.folder,
        "SELECT device, sum(energy_millijoules), sum(window_ms), min(driver_epoch), max(driver_epoch) "
        "FROM lake.device_window JOIN lake.device_number ON device_no = dh // 24 GROUP BY 1 ORDER BY 1",
    )
    assert found == [("GPU-a", 9_000 + 3_000, 120_000, 0, 0), ("GPU-b", 9_000, 120_000, 0, 0)]
    boots = hubs.rows(hub.folder, "SELECT DISTINCT boot_id FROM lake.ingest_batch ORDER BY 1")
    assert boots == [(boot,) for boot in sorted(BOOTS)]


def test_a_restart_in_the_same_boot_goes_on_where_the_last_ended(tmp_path: Path, hub: Hub) -> None:
    start = some_minutes_ago()
    for boot_second in (0, 120):
        agent = Fed(tmp_path / "spool.sqlite", hub.address, BOOTS[0], "n1")
        agent.watch(start + boot_second, 90, {"GPU-a": 7_000 + 100 * boot_second})
        agent.end()
    agent = Fed(tmp_path / "spool.sqlite", hub.address, BOOTS[0], "n1")
    agent.push.start()
    wait_until(lambda: agent.spool.status.batch_count == 0)
    agent.end()
    query = "SELECT sum(energy_millijoules), sum(window_ms), sum(observed_ms) FROM lake.device_window"
    assert hubs.rows(hub.folder, query) == [(21_000, 210_000, 180_000)]
