"""Windows, whatever comes: totals are conserved, rows are sound, order does not matter."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from collectors.rows.windows import Windows
from collectors.samples import DeviceSample
from fleet.telemetry import QUALITY_BITS, DeviceWindowRow
from tests.collectors.window_ticks import gpu, total, walk

if TYPE_CHECKING:
    from collections.abc import Sequence


RATIO = st.none() | st.integers(0, 100).map(lambda percent: percent / 100) | st.floats(0, 1)
ADDED = st.integers(0, 24_000_000)
"""At most what any board may draw in a second, 20 kW and a fifth."""
STREAM = st.lists(st.tuples(st.integers(1, 4), RATIO, ADDED), min_size=2, max_size=40)


def stream(steps: Sequence[tuple[int, float | None, int]]) -> dict[int, list[DeviceSample]]:
    ticks, second, added = {}, 50, 0
    for seconds, ratio, more in steps:
        second += seconds
        added += more
        ticks[second] = [gpu(busy_ratio=ratio, sm_ratio=ratio, energy_millijoules=added, pcie_tx_bytes=added)]
    return ticks


SAMPLES = st.builds(
    DeviceSample, st.just("gpu"), st.sampled_from(["GPU-a", "GPU-b"]), busy_ratio=RATIO | st.floats(),
    sm_ratio=RATIO, tensor_ratio=RATIO, memory_used_bytes=st.none() | st.integers(-1, 2**63),
    power_watts=st.none() | st.floats(0, 1e4), power_limit_watts=st.none() | st.just(700.0),
    energy_millijoules=st.none() | st.integers(0, 2**63 - 1), pcie_tx_bytes=st.none() | st.integers(0, 2**63 - 1),
    ts_nanoseconds=st.none() | st.integers(0, 10**12), throttle_bits=st.none() | st.integers(0, 2**64),
    state=st.sampled_from(["ok", "degraded", "unobserved", "needs_reset", "lost"]),
    quality=st.lists(st.sampled_from(sorted(QUALITY_BITS)), unique=True).map(tuple),
)  # fmt: skip
TICKS = st.lists(st.tuples(st.integers(-90, 90), st.lists(SAMPLES, max_size=3)), min_size=1, max_size=20)


@given(STREAM, st.sampled_from([1, 7, 60, 3600]), st.sets(st.integers(0, 39)))
def test_any_cut_into_ticks_and_windows_conserves(
    steps: list[tuple[int, float | None, int]], window_seconds: int, left_out: set[int]
) -> None:
    """Energy and bytes are those of the counters, however windows are cut and whichever ticks are missing."""
    whole = stream(steps)
    kept = {s: samples for i, (s, samples) in enumerate(whole.items()) if i not in left_out or i in {0, len(whole) - 1}}
    rows = walk(kept, Windows(window_seconds))
    first, last = whole[min(whole)][0], whole[max(whole)][0]
    for name in ("energy_millijoules", "pcie_tx_bytes"):
        assert (total(rows, name) or 0) == getattr(last, name) - getattr(first, name)
    assert total(rows, "window_ms") == (max(whole) - min(whole)) * 1000
    exact = walk(kept, Windows(10**9))
    for name in ("busy_ms", "busy_observed_ms", "sm_ms", "observed_ms"):
        assert total(rows, name) == total(exact, name)


@given(TICKS)
def test_whatever_comes_the_row_is_sound(ticks: list[tuple[int, list[DeviceSample]]]) -> None:
    windows, second = Windows(), 1000
    rows: list[DeviceWindowRow] = []
    covered: dict[tuple[str, int], int] = {}
    for step, samples in ticks:
        second += step
        rows += windows.advance(second, samples)
        windows = Windows(state=json.loads(json.dumps(windows.state())))
    for row in (*rows, *windows.close(10**6)):
        assert 0 <= row.observed_ms <= row.window_ms <= 60_000
        groups = (row.busy_observed_ms, row.profile_observed_ms, row.memory_observed_ms, row.power_observed_ms)
        assert all(0 <= observed <= row.observed_ms for observed in groups)
        assert 0 <= (row.busy_ms or 0) <= row.busy_observed_ms
        assert 0 <= (row.sm_ms or 0) <= row.profile_observed_ms
        assert (row.busy_ms is None) == (row.busy_observed_ms == 0)
        assert (row.energy_millijoules or 0) >= 0
        assert (row.pcie_tx_bytes or 0) >= 0
        place = (row.device, row.window_start_second)
        covered[place] = covered.get(place, 0) + row.window_ms
    assert all(ms <= 60_000 for ms in covered.values())


@given(st.lists(st.permutations(["GPU-a", "GPU-b", "GPU-c"]), min_size=2, max_size=8))
def test_the_order_of_samples_does_not_matter(orders: list[list[str]]) -> None:
    def rows(names: Sequence[Sequence[str]]) -> list[DeviceWindowRow]:
        base = {name: gpu(name, energy_millijoules=n) for n, name in enumerate(["GPU-a", "GPU-b", "GPU-c"])}
        return walk({
            20 * t: [replace(base[name], busy_ratio=t / 10, energy_millijoules=t * 9) for name in order]
            for t, order in enumerate(names)
        })  # fmt: skip

    assert rows(orders) == rows([sorted(order) for order in orders])
