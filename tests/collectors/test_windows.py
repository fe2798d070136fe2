"""Windows: integrals that are exact, states that stay, nothing invented."""

from __future__ import annotations

from collectors.rows.windows import Windows
from collectors.samples import DeviceSample
from fleet.telemetry import DeviceWindowRow
from tests.collectors.window_ticks import ESTIMATED, PARTIAL, REJECTED, gpu, mig, only, steady, walk

MONTH_END = 1_775_001_600  # 2026-04-01T00:00:00Z


def test_a_window_holds_exact_integrals() -> None:
    """60 s at 37 %, 3 GiB and 250.5 W: 22,200 ms, 3,072 MiB x 60,000 ms, 15,030,000,000 uJ."""
    windows = Windows()
    ticks = steady(range(61), busy_ratio=0.37, sm_ratio=0.5, memory_used_bytes=3 << 30, power_watts=250.5,
                   sm_megahertz=1980, temperature_celsius=61, throttle_bits=4)  # fmt: skip
    closed = [row for second, samples in ticks.items() for row in windows.advance(second, samples)]
    assert closed == [
        DeviceWindowRow(
            device="GPU-a", window_start_second=0, window_ms=60_000, observed_ms=60_000, state="ok",
            busy_observed_ms=60_000, busy_ms=22_200, profile_observed_ms=60_000, sm_ms=30_000,
            memory_observed_ms=60_000, memory_used_mebibyte_ms=3072 * 60_000, memory_used_max_mebibytes=3072,
            power_observed_ms=60_000, power_microjoules=15_030_000_000, power_max_milliwatts=250_500,
            energy_millijoules=15_030_000, sm_clock_max_megahertz=1980, temperature_max_celsius=61, throttle_bits=4,
            quality_bits=ESTIMATED,
        )
    ]  # fmt: skip
    assert windows.close(60) == ()


def test_unknown_is_none_and_not_zero() -> None:
    row = only(walk(steady(range(11), busy_ratio=None, pcie_replay_events=7)))
    assert (row.busy_ms, row.busy_observed_ms, row.sm_ms, row.energy_millijoules) == (None, 0, None, None)
    assert (row.observed_ms, row.pcie_replay_events, row.pcie_tx_bytes) == (10_000, 0, None)


def test_each_group_knows_how_long_it_was_seen() -> None:
    ticks = steady(range(11), busy_ratio=0.5) | steady(range(11, 21), power_watts=100)
    row = only(walk(ticks))
    assert (row.observed_ms, row.busy_observed_ms, row.busy_ms) == (20_000, 10_000, 5000)
    assert (row.power_observed_ms, row.memory_observed_ms) == (10_000, 0)


def test_profile_values_that_come_and_go_are_partial() -> None:
    ticks = steady(range(11), sm_ratio=0.5, tensor_ratio=0.1) | steady(range(11, 21), sm_ratio=0.5)
    assert only(walk(ticks)).quality_bits == PARTIAL


def test_an_interval_over_a_window_edge_is_cut_there() -> None:
    """15 s at 1/3, 10 s of it before midnight at the end of a month."""
    begin = MONTH_END - 10
    windows = Windows(longest_gap_seconds=45)
    ticks = {begin: [gpu(energy_millijoules=0)], begin + 15: [gpu(energy_millijoules=1000, busy_ratio=1 / 3)]}
    before, after = walk(ticks, windows)
    assert (before.window_start_second, before.window_ms, before.busy_ms) == (MONTH_END - 60, 10_000, 3333)
    assert (after.window_start_second, after.window_ms, after.busy_ms) == (MONTH_END, 5000, 1667)
    assert (before.energy_millijoules, after.energy_millijoules) == (666, 334)


def test_dcgm_exporter_348_a_lost_gpu_does_not_shrink_the_fleet() -> None:
    ticks = steady(range(31), busy_ratio=1.0) | {s: [gpu(state="lost")] for s in range(31, 121)}
    first, second = walk(ticks)
    assert (first.state, first.window_ms, first.observed_ms, first.busy_ms) == ("lost", 60_000, 30_000, 30_000)
    assert (second.state, second.window_ms, second.observed_ms) == ("lost", 60_000, 0)


def test_the_worst_state_stays() -> None:
    states = ["ok", "degraded", "needs_reset", "degraded", "ok"]
    row = only(walk({s: [gpu(state=state)] for s, state in enumerate(["ok", *states])}))
    assert (row.state, row.observed_ms) == ("needs_reset", 5000)


def test_gpu_operator_2482_a_board_cut_anew_closes_the_old_instances() -> None:
    """Instance 1 goes and 9 comes at 30: each counts its own half of the window, and no more."""
    windows = Windows()
    rows: list[DeviceWindowRow] = []
    for second in range(121):
        parts = [mig("1", sm_ratio=1.0)] if second < 30 else [mig("9", sm_ratio=0.5)]
        rows += windows.advance(second, [gpu(), *parts])
    found = [(r.device, r.window_start_second, r.window_ms, r.sm_ms) for r in rows if r.device != "GPU-a"]
    assert found == [
        ("MIG-1", 0, 29_000, 29_000),
        ("MIG-9", 0, 30_000, 15_000),
        ("MIG-9", 60, 60_000, 30_000),
    ]
    assert set(windows.state()["devices"]) == {"GPU-a", "MIG-9"}


def test_geopm_4028_what_cannot_be_is_not_integrated() -> None:
    windows = Windows()
    row = only(walk(steady(range(3), busy_ratio=1e10, sm_ratio=float("nan"), power_watts=-1), windows))
    assert (row.busy_ms, row.sm_ms, row.power_microjoules, row.observed_ms) == (None, None, None, 2000)
    assert (row.quality_bits, dict(windows.rejected)) == (REJECTED, {"range": 6})


def test_a_number_that_no_column_holds_costs_itself_only() -> None:
    row = only(walk(steady(range(3), throttle_bits=2**64 - 1, busy_ratio=1.0)))
    assert (row.throttle_bits, row.busy_ms, row.quality_bits) == (None, 2000, REJECTED)


def test_names_that_nobody_can_store_are_left_out() -> None:
    ticks = {s: [gpu("G" * 257), DeviceSample("gpu", None, busy_ratio=1.0), gpu()] for s in range(3)}
    assert [row.device for row in walk(ticks)] == ["GPU-a"]


def test_made_up_names_do_not_fill_the_memory() -> None:
    windows = Windows()
    for second in range(3):
        windows.advance(second, [gpu(f"GPU-{second}-{n}") for n in range(1000)])
    assert len(windows.epochs()) == 1024
    assert windows.rejected["too_many_devices"] == 3000 - 1024
