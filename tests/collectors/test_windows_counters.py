"""Energy and counters in windows: meters that freeze, lie or begin again."""

from __future__ import annotations

from dataclasses import replace

from collectors.rows.windows import Windows
from collectors.samples import DeviceSample
from fleet.telemetry import QUALITY_BITS
from tests.collectors.dcgm_pages import page, recorded
from tests.collectors.window_ticks import ESTIMATED, REJECTED, RESET, STALE, gpu, metered, only, steady, total, walk


def test_pyjoules_20_watts_times_seconds_are_joules() -> None:
    """300 W for 10 s are 3,000 J, whether the meter says so or power does."""
    by_meter = only(walk(metered(*range(0, 3_000_001, 300_000), power_watts=300)))
    by_power = only(walk(steady(range(11), power_watts=300)))
    assert by_meter.energy_millijoules == by_power.energy_millijoules == 3_000_000
    assert by_meter.power_microjoules == 3_000_000_000
    assert (by_meter.quality_bits, by_power.quality_bits) == (0, ESTIMATED)


def test_amdsmi_38_a_frozen_meter_is_replaced_by_power() -> None:
    """The meter stands at 1 J under 300 W: after five readings all of it is counted from power, and marked."""
    row = only(walk(metered(0, *[1000] * 20, power_watts=300)))
    assert row.energy_millijoules == 1000 + 19 * 300_000
    assert row.quality_bits == ESTIMATED | STALE


def test_dcgm_exporter_164_a_meter_served_late_is_not_counted_twice() -> None:
    """Twenty seconds the same, then all at once: the estimate is taken off what the meter brings."""
    row = only(walk(metered(0, *[1000] * 20, 1000 + 6_300_000, power_watts=300)))
    assert row.energy_millijoules == 1000 + 6_300_000


def test_a_meter_that_lags_a_little_is_believed() -> None:
    row = only(walk(metered(0, 0, 600_000, 600_000, 1_200_000, power_watts=300, power_limit_watts=700)))
    assert (row.energy_millijoules, row.quality_bits) == (1_200_000, 0)


def test_a_meter_that_lags_while_power_falls_is_believed() -> None:
    """900 J come after three silent seconds at 300 W and one at 0 W: that is 225 W, not 900."""
    ticks = metered(0, 0, 0, 0, 0, 900_000, power_watts=300, power_limit_watts=700)
    ticks[4] = [gpu(energy_millijoules=0, power_watts=0, power_limit_watts=700)]
    assert only(walk(ticks)).energy_millijoules == 900_000


def test_a_little_lag_over_a_window_edge_makes_no_row_for_the_window_that_is_over() -> None:
    """The meter moves every third second, bytes are unreadable at 60: what comes at 61 counts from 60 on."""
    ticks = {
        s: [gpu(energy_millijoules=(s + 2) // 3 * 900_000, power_watts=300, pcie_tx_bytes=None if s == 60 else s)]
        for s in range(56, 71)
    }
    first, second = walk(ticks)
    assert (first.window_start_second, second.window_start_second) == (0, 60)
    assert (first.pcie_tx_bytes, second.pcie_tx_bytes) == (3, 11)
    assert (first.energy_millijoules, second.energy_millijoules) == (900_000, 3_600_000)


def test_a_meter_at_rest_without_power_is_no_freeze() -> None:
    row = only(walk(metered(*[500] * 30, power_watts=0)))
    assert (row.energy_millijoules, row.quality_bits) == (0, 0)


def test_rocm_smi_lib_180_more_than_the_board_may_draw_is_refused() -> None:
    """A jump of 5 MJ in a second at 700 W: power stands in, what follows is believed again."""
    windows = Windows()
    ticks = metered(0, 600_000, 5_600_000_000, 5_600_600_000, power_watts=600, power_limit_watts=700)
    row = only(walk(ticks, windows))
    assert (row.energy_millijoules, row.quality_bits) == (1_800_000, REJECTED | ESTIMATED)
    assert dict(windows.rejected) == {"implausible_energy": 1}


def test_rocm_smi_lib_180_without_a_limit_what_no_board_can_draw_is_refused() -> None:
    """Many pages tell no limit: a jump of 1e15 mJ in a second is noise all the same."""
    row = only(walk(metered(0, 600_000, 10**15, 1_800_000, power_watts=600)))
    assert (row.energy_millijoules, row.quality_bits, row.driver_epoch) == (1_800_000, REJECTED | ESTIMATED, 0)


def test_a_wild_reading_of_the_meter_is_no_reset() -> None:
    row = only(walk(metered(600_000, 1_200_000, 2**62, 2_400_000, 3_000_000, power_watts=600, power_limit_watts=700)))
    assert (row.energy_millijoules, row.driver_epoch) == (2_400_000, 0)
    assert not row.quality_bits & RESET


def test_1_2_times_the_limit_is_the_limit() -> None:
    at, beyond = (walk(metered(0, mj, power_limit_watts=700)) for mj in (840_000, 840_001))
    assert (only(at).energy_millijoules, only(beyond).energy_millijoules) == (840_000, None)


def test_a_late_tick_is_judged_by_when_the_meter_was_read() -> None:
    """Readings 1.9 s apart in neighbouring seconds: 700 W for 1.9 s is no jump."""
    ticks = {1: [gpu(ts_nanoseconds=1_000_000_000, energy_millijoules=0, power_limit_watts=700)]}
    ticks[2] = [gpu(ts_nanoseconds=2_900_000_000, energy_millijoules=1_330_000, power_limit_watts=700)]
    assert only(walk(ticks)).energy_millijoules == 1_330_000


def test_a_reset_in_sight_counts_what_the_counter_shows_since() -> None:
    ticks = {s: [gpu(pcie_tx_bytes=b, energy_millijoules=b)] for s, b in enumerate((100, 150, 20, 30))}
    row = only(walk(ticks))
    assert (row.pcie_tx_bytes, row.energy_millijoules) == (50 + 20 + 10, 50 + 20 + 10)
    assert (row.driver_epoch, row.quality_bits) == (1, RESET)


def test_a_reset_out_of_sight_adds_nothing() -> None:
    """Between 1 and 40 the driver was loaded anew, who knows when: 20 bytes are no delta."""
    counters = ((0, 100), (1, 150), (40, 20))
    row = only(walk({second: [gpu(pcie_tx_bytes=read, energy_millijoules=read)] for second, read in counters}))
    assert (row.pcie_tx_bytes, row.energy_millijoules) == (50, 50)
    assert (row.driver_epoch, row.quality_bits) == (1, RESET)


def test_counters_read_seldom_fall_later_and_are_one_reset() -> None:
    ticks = {s: [gpu(energy_millijoules=1000 + s if s < 5 else s, pcie_tx_bytes=9 if s < 15 else 3)] for s in range(20)}
    assert only(walk(ticks)).driver_epoch == 1


def test_errors_since_driver_load_and_since_ever_are_not_added() -> None:
    both = {s: [gpu(ecc_corrected_volatile_errors=s, ecc_corrected_aggregate_errors=100 + s)] for s in range(4)}
    assert only(walk(both)).ecc_corrected_errors == 3
    lasting = {s: [gpu(ecc_corrected_aggregate_errors=100 + s)] for s in range(4)}
    assert only(walk(lasting)).ecc_corrected_errors == 3


def test_resets_and_estimates_are_told_for_the_page() -> None:
    windows = Windows()
    for second in range(4):
        read = 5 if second < 2 else 1
        windows.advance(second, [gpu(energy_millijoules=read, power_watts=0), gpu("GPU-b", power_watts=2.0)])
    assert windows.epochs() == {"GPU-a": 1, "GPU-b": 0}
    assert windows.estimated_millijoules() == {"GPU-b": 6000}


def test_dcgm_exporter_582_energy_once() -> None:
    """A GPU that two pods share, on a page that repeats its meter for each: 1 kJ more is 1 kJ, not 2."""
    (after,) = recorded("timeslice-virtualgpus").samples
    assert after.energy_millijoules == 3_500_000_000
    before = replace(after, energy_millijoules=3_499_000_000)
    rows = walk({0: [before], 1: [replace(after, ts_nanoseconds=None)]})
    assert total(rows, "energy_millijoules") == 1_000_000


def test_dcgm_exporter_317_a_board_cut_into_instances_draws_its_power_once() -> None:
    samples = recorded("a100-mig").samples
    rows = walk({second: [replace(sample, ts_nanoseconds=None) for sample in samples] for second in range(11)})
    assert len(rows) == len(samples) > 1
    assert total(rows, "power_microjoules") == 252_636 * 10_000
    assert total(rows, "power_observed_ms") == 10_000


def test_device_metrics_exporter_495_partitions_draw_nothing_of_their_own() -> None:
    """Eight partitions of a board of 512 W, of which some say 0 W and some repeat the board."""
    parts = [DeviceSample("partition", f"P{n}", parent_uuid="GPU-a", power_watts=512.0 * (n % 2)) for n in range(8)]
    rows = walk({
        second: [gpu(power_watts=512.0), *(replace(part, energy_millijoules=second * 512_000) for part in parts)]
        for second in range(11)
    })  # fmt: skip
    assert (len(rows), total(rows, "power_microjoules"), total(rows, "energy_millijoules")) == (
        9,
        512_000 * 10_000,
        5_120_000,
    )


def test_dcgm_exporter_417_a_rate_that_is_called_a_counter_is_no_reset() -> None:
    readings = [page(f"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{{}} {rate}", "DCGM_FI_DEV_GPU_UTIL{} 5") for rate in (900, 3)]
    row = only(walk({second: list(reading.samples) for second, reading in enumerate(readings)}))
    assert (row.driver_epoch, row.quality_bits, row.nvlink_tx_bytes) == (0, 0, None)


def test_dcgm_303_a_stuck_profiling_unit_is_unknown_and_not_idle() -> None:
    stuck = page("DCGM_FI_DEV_GPU_UTIL{} 100", "DCGM_FI_PROF_SM_ACTIVE{} 0", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{} 0")
    row = only(walk({second: list(stuck.samples) for second in range(11)}))
    assert (row.busy_ms, row.sm_ms, row.profile_observed_ms) == (10_000, None, 0)
    assert row.quality_bits == QUALITY_BITS["profiling_stuck"]
