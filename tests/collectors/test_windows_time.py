"""Windows over holes, clocks that jump and restarts: no second twice, counters bridge what nobody saw."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from collectors.rows.windows import Windows
from tests.collectors.window_ticks import STALE, gpu, mig, only, total, walk

if TYPE_CHECKING:
    from fleet.telemetry import DeviceWindowRow

DAY = 86_400


def test_pytorch_ci_infra_1011_a_hole_is_blind_and_counters_bridge_it() -> None:
    """Nobody looked from 10 to 190: no activity is claimed, the meter's 18 J are split over the windows by time."""
    ticks = {9: [gpu(energy_millijoules=0)], 10: [gpu(energy_millijoules=1)]}
    ticks[190] = [gpu(energy_millijoules=18_001, busy_ratio=1.0)]
    rows = walk(ticks)
    assert [(r.window_start_second, r.window_ms, r.observed_ms, r.energy_millijoules, r.busy_ms) for r in rows] == [
        (0, 51_000, 1000, 5001, None),
        (60, 60_000, 0, 6000, None),
        (120, 60_000, 0, 6000, None),
        (180, 10_000, 0, 1000, None),
    ]
    assert [row.state for row in rows] == ["ok", "unobserved", "unobserved", "ok"]


def test_a_counter_away_while_time_went_on_comes_back_to_the_windows_that_are_over() -> None:
    """The meter is silent from 1 to 130 while the device is unobserved: rows that only add energy follow."""
    ticks = {0: [gpu(energy_millijoules=0)]} | {s: [gpu(state="unobserved")] for s in range(1, 130)}
    ticks[130] = [gpu(energy_millijoules=13_000)]
    windows = Windows()
    closed = {second: windows.advance(second, samples) for second, samples in ticks.items()}
    assert [(r.window_start_second, r.window_ms, r.energy_millijoules) for r in closed[130]] == [
        (0, 0, 6000),
        (60, 0, 6000),
    ]
    assert [(r.window_start_second, r.window_ms, r.energy_millijoules) for r in windows.close(130)] == [
        (120, 10_000, 1000)
    ]


def test_a_clock_that_goes_back_covers_nothing_twice() -> None:
    """20 s, back to 5, and on to 30: 30 s in all, and the energy of all 45 ticks."""
    windows, energy = Windows(), 0
    rows: list[DeviceWindowRow] = []
    for second in (*range(21), *range(5, 31)):
        rows += windows.advance(second, [gpu(busy_ratio=1.0, energy_millijoules=energy, power_limit_watts=1)])
        energy += 1000
    row = only([*rows, *windows.close(30)])
    assert (row.window_ms, row.busy_ms, row.energy_millijoules) == (30_000, 30_000, energy - 1000)


def test_a_clock_that_jumps_ahead_leaves_a_hole() -> None:
    rows = walk({s: [gpu(busy_ratio=1.0, energy_millijoules=s)] for s in (0, 1, 3601)})
    assert (total(rows, "window_ms"), total(rows, "observed_ms")) == (3_601_000, 1000)


def test_whole_windows_of_which_nothing_is_known_make_no_row() -> None:
    rows = walk({s: [mig("1", sm_ratio=1.0)] for s in (0, 1, 3601)})
    assert [(row.window_start_second, row.window_ms, row.sm_ms) for row in rows] == [
        (0, 60_000, 1000),
        (3600, 1000, None),
    ]


def test_a_clock_set_years_ahead_and_back_neither_floods_nor_blinds() -> None:
    windows = Windows()
    ticks = [*range(11), *range(400 * DAY, 400 * DAY + 5), *range(20, 31)]
    rows = [row for s in ticks for row in windows.advance(s, [gpu(busy_ratio=1.0, energy_millijoules=s)])]
    rows += windows.close(400 * DAY)
    assert [row.window_start_second for row in rows] == [0, 400 * DAY, 0]
    near = [row for row in rows if row.window_start_second == 0]
    assert (total(near, "window_ms"), total(near, "busy_ms")) == (20_000, 20_000)


def test_the_same_reading_again_is_no_news() -> None:
    """A page read every seven seconds and shown each second: the window waits for the reading that completes it."""
    windows = Windows(longest_gap_seconds=21)
    rows: list[DeviceWindowRow] = []
    for second in range(64):
        read = second - second % 7
        rows += windows.advance(
            second, [gpu(ts_nanoseconds=read * 10**9, energy_millijoules=read * 300_000, power_watts=300)]
        )
    row = only(rows)
    assert (row.observed_ms, row.energy_millijoules, row.quality_bits) == (60_000, 18_000_000, 0)


def test_dcgm_exporter_164_a_reading_repeated_for_long_is_nobody_looking() -> None:
    ticks = {s: [gpu(ts_nanoseconds=min(s, 10), busy_ratio=1.0)] for s in range(61)}
    row = only(walk(ticks))
    assert (row.busy_ms, row.observed_ms, row.state) == (10_000, 10_000, "unobserved")
    assert row.quality_bits == STALE
    assert row.window_ms >= 55_000


def test_a_process_that_dies_goes_on_from_its_state() -> None:
    """Killed after 95 with the state of 60, back at 100: the blind time is told, and the meter bridges it."""
    windows, rows, state = Windows(), [], {}
    for second in range(96):
        closed = windows.advance(second, [gpu(energy_millijoules=second * 1000, busy_ratio=1.0)])
        if closed:
            rows += closed
            state = json.loads(json.dumps(windows.state()))
    again = Windows(state=state)
    for second in range(100, 121):
        rows += again.advance(second, [gpu(energy_millijoules=second * 1000, busy_ratio=1.0)])
    assert [(r.window_start_second, r.window_ms, r.observed_ms, r.energy_millijoules) for r in rows] == [
        (0, 60_000, 60_000, 60_000),
        (60, 60_000, 20_000, 60_000),
    ]


def test_a_state_holds_the_windows_that_are_open() -> None:
    windows = Windows()
    for second in range(31):
        assert not windows.advance(second, [gpu(busy_ratio=0.5, sm_ratio=0.5, energy_millijoules=second)])
    again = Windows(state=json.loads(json.dumps(windows.state())))
    row = only([*again.advance(31, [gpu(busy_ratio=0.5, sm_ratio=0.5, energy_millijoules=31)]), *again.close(31)])
    assert (row.busy_ms, row.sm_ms, row.energy_millijoules, row.quality_bits) == (15_500, 15_500, 31, 0)


def test_a_state_that_cannot_be_read_is_as_none() -> None:
    windows = Windows()
    windows.advance(0, [gpu(energy_millijoules=5)])
    good = windows.state()
    bad: list[Any] = [{}, {"version": 2}, {"version": 1}, good | {"devices": {"GPU-a": {"totals": []}}}]
    bad.append(good | {"devices": {"GPU-a": good["devices"]["GPU-a"] | {"covered_second": "x"}}})
    for state in bad:
        assert Windows(state=state).state()["devices"] == {}
    assert set(Windows(state=good).state()["devices"]) == {"GPU-a"}
