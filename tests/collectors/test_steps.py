"""Steps between pages: deltas that are never negative, devices that are lost and not forgotten, Xids that are new."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from collectors.dcgm.collector import Dcgm
from collectors.samples import COUNTERS, DeviceSample, Reading
from collectors.steps import steps
from tests.collectors.dcgm_pages import UUID, counts, only, page, recorded, step

if TYPE_CHECKING:
    from collections.abc import Sequence


def energy(value: float, watts: float = 0, at_ms: int | None = None) -> Reading:
    time = "" if at_ms is None else f" {at_ms}"
    return page(
        f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{}} {value}{time}",
        f"DCGM_FI_DEV_POWER_USAGE{{}} {watts}{time}",
        f"DCGM_FI_DEV_ENFORCED_POWER_LIMIT{{}} 700{time}",
    )


def xids(*codes: int | None) -> list[list[int]]:
    """The new codes of each step, from the gauge's values; None is a page without the gauge."""
    readings = [
        page("DCGM_FI_DEV_GPU_UTIL{} 1", *([] if code is None else [f"DCGM_FI_DEV_XID_ERRORS{{}} {code}"]))
        for code in codes
    ]
    return [[event.code for event in reading.events] for reading in steps(readings)]


def test_one_page_is_no_step() -> None:
    assert steps([recorded("h100x8-k8s")]) == []


def test_counters_become_what_was_added() -> None:
    """The second page holds the energy counter and Xids only; GPU 2 was reset in between and shows 4.2 MJ since."""
    reading = step(recorded("h100x8-k8s"), recorded("h100x8-k8s-t30"))
    assert [sample.energy_millijoules for sample in reading.samples] == [
        12370080, 12270029, 4200000, 12312359, 20667149, 3546600, 2163120, 2140140,
    ]  # fmt: skip
    assert [sample.quality for sample in reading.samples] == [(), (), ("reset",), (), (), (), (), ()]
    assert [sample.driver_epoch for sample in reading.samples] == [0, 0, 1, 0, 0, 0, 0, 0]
    assert {sample.counters for sample in reading.samples} == {"delta"}
    assert {sample.pcie_replay_events for sample in reading.samples} == {None}


def test_dcgm_exporter_348_a_gpu_off_the_bus_is_lost_not_fewer() -> None:
    """Eight GPUs, then seven: eight rows, one of them lost, with no reading and its owner still named."""
    reading = step(recorded("h100x8-k8s"), recorded("gpu3-missing"))
    assert len(reading.samples) == 8
    (lost,) = (sample for sample in reading.samples if sample.state == "lost")
    assert (lost.slot, lost.uuid, lost.model) == ("3", UUID.replace("a0000000", "a0000003"), "NVIDIA H100 80GB HBM3")
    assert [owner.pod for owner in lost.owner] == ["llama70b-0"]
    assert lost.quality == ("stale",)
    assert (lost.busy_ratio, lost.energy_millijoules, lost.power_watts) == (None, None, None)


def test_a_lost_gpu_stays_lost_until_it_is_named_again() -> None:
    whole, without = recorded("h100x8-k8s"), recorded("gpu3-missing")
    walked = steps([whole, without, without, recorded("h100x8-k8s-t30")])
    assert [[s.state for s in reading.samples].count("lost") for reading in walked] == [1, 1, 0]
    back = walked[-1].samples[3]
    assert (back.slot, back.energy_millijoules) == ("3", 12312359)


def test_dcgm_exporter_569_with_claims_an_absent_device_is_unobserved() -> None:
    """With dynamic allocation the exporter leaves out what nobody holds: that is no fault of the device."""
    claim = 'dra_claim_name="c",pod="p",namespace="n"'
    held, other = (Dcgm("page").read(f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-{name}",{claim}}} 5') for name in ("a", "b"))
    assert [(s.uuid, s.state) for s in step(held, other).samples] == [("GPU-b", "ok"), ("GPU-a", "unobserved")]


def test_a_mig_instance_is_gone_when_its_board_was_cut_anew() -> None:
    first = page('DCGM_FI_PROF_SM_ACTIVE{GPU_I_ID="1"} 0.5', 'DCGM_FI_PROF_SM_ACTIVE{GPU_I_ID="2"} 0.5')
    second = page('DCGM_FI_PROF_SM_ACTIVE{GPU_I_ID="2"} 0.5', 'DCGM_FI_PROF_SM_ACTIVE{GPU_I_ID="9"} 0.5')
    assert [(s.kind, s.slot, s.state) for s in step(first, second).samples] == [
        ("gpu", "0", "ok"),
        ("mig", "2", "ok"),
        ("mig", "9", "ok"),
    ]


def test_an_instance_cut_anew_in_the_same_slot_has_no_delta() -> None:
    board = DeviceSample("gpu", "GPU-a")
    old, new = (DeviceSample("mig", None, parent_uuid="GPU-a", slot="1", pcie_tx_bytes=b) for b in (100, 300))
    walked = steps([Reading((board, old)), Reading((board,)), Reading((board, new))])
    assert [sample.pcie_tx_bytes for sample in walked[-1].samples] == [None, None]


def test_a_lost_board_takes_its_mig_instances_along() -> None:
    first = recorded("a100-mig")
    second = Dcgm("page").read('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-other"} 0')
    assert [s.state for s in step(first, second).samples] == ["ok", "lost", "lost", "lost", "lost"]


def test_a_device_that_is_new_has_no_delta() -> None:
    first = Dcgm("page").read('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-other"} 0')
    new = step(first, energy(5000)).samples[0]
    assert (new.uuid, new.energy_millijoules, new.counters) == (UUID, None, "delta")


def test_dcgm_exporter_164_frozen_energy_under_power_is_stale() -> None:
    """The same reading served again is neither 0 mJ used nor fresh; what comes later bridges it."""
    frozen, later = steps([energy(1000, 300), energy(1000, 300), energy(9000, 300)])
    assert (only(frozen).energy_millijoules, only(frozen).quality) == (None, ("stale",))
    assert (only(later).energy_millijoules, only(later).quality) == (8000, ())


def test_an_idle_meter_that_stands_still_is_not_stale() -> None:
    sample = only(step(energy(1000, 0), energy(1000, 0)))
    assert (sample.energy_millijoules, sample.quality) == (0, ())


def test_a_counter_absent_for_a_page_bridges_the_gap() -> None:
    blind = page("DCGM_FI_DEV_GPU_UTIL{} 1")
    gap, after = steps([energy(1000), blind, energy(4000)])
    assert (only(gap).energy_millijoules, only(after).energy_millijoules) == (None, 3000)


def test_more_energy_than_the_board_may_draw_is_refused() -> None:
    """700 W for 10 s is 7,000,000 mJ at most, and a fifth more for the ticks of two clocks."""
    start = energy(1000, 650, at_ms=1_785_542_000_000)
    possible = step(start, energy(1000 + 7_500_000, 650, at_ms=1_785_542_010_000))
    assert (only(possible).energy_millijoules, only(possible).interval_seconds) == (7_500_000, 10.0)
    impossible = step(start, energy(1000 + 9_000_000, 650, at_ms=1_785_542_010_000))
    assert (only(impossible).energy_millijoules, only(impossible).quality) == (None, ("rejected",))
    assert counts(impossible) == {"implausible_energy": 1}


def test_without_a_limit_more_than_any_board_draws_is_refused() -> None:
    first = only(energy(1000, 650, at_ms=1_785_542_000_000))
    before, after = (
        Reading((replace(first, power_limit_watts=None, ts_nanoseconds=second * 10**9, energy_millijoules=total),))
        for second, total in ((1, 1000), (11, 10**15))
    )
    assert counts(step(before, after)) == {"implausible_energy": 1}


def test_pages_without_a_time_have_no_interval() -> None:
    assert only(step(energy(1), energy(2))).interval_seconds is None


def test_dcgm_exporter_500_a_sticky_xid_is_one_event() -> None:
    """The gauge shows the last Xid until the driver is reloaded: 31 for hours is one Xid 31."""
    assert xids(0, 31, 31, 31) == [[31], [], []]
    assert xids(31, 31) == [[]]


def test_dcgm_exporter_190_the_same_xid_again_is_invisible_here() -> None:
    """The gauge cannot tell 31 from 31 once more: no event is invented, the kernel log has both."""
    assert xids(0, 31, 31) == [[31], []]


def test_dcgm_235_only_the_last_of_two_xids_is_seen() -> None:
    """62 hidden behind 45 between two pages: 45 is told; the kernel log has both."""
    assert xids(0, 45) == [[45]]
    assert xids(0, 62, 45) == [[62], [45]]


def test_dcgm_exporter_646_an_absent_xid_is_neither_news_nor_the_end() -> None:
    assert xids(31, None, 31) == [[], []]
    assert xids(None, 31) == [[31]]
    assert xids(31, 0, 31) == [[], [31]]


def test_an_xid_on_a_device_seen_first_is_old_for_all_we_know() -> None:
    first = Dcgm("page").read('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-other"} 0')
    assert step(first, page("DCGM_FI_DEV_XID_ERRORS{} 79")).events == ()


def test_an_xid_repeated_on_mig_instances_is_one_event() -> None:
    first, second = (page(*(f'DCGM_FI_DEV_XID_ERRORS{{GPU_I_ID="{i}"}} {code}' for i in (1, 2))) for code in (0, 94))
    assert [(event.uuid, event.code_space, event.code) for event in step(first, second).events] == [(UUID, "xid", 94)]


VALUES = st.none() | st.integers(0, 2**62)


def devices(values: Sequence[int | None]) -> Reading:
    return Reading(tuple(DeviceSample("gpu", f"GPU-{i}", energy_millijoules=v) for i, v in enumerate(values)))


@given(st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=2, max_size=8))
def test_no_delta_is_ever_negative_and_no_device_is_forgotten(pages: list[list[int | None]]) -> None:
    readings = [devices(values[: 1 + i % 3]) for i, values in enumerate(pages)]
    seen: set[str | None] = {sample.uuid for sample in readings[0].samples}
    for reading, walked in zip(readings[1:], steps(readings), strict=True):
        seen |= {sample.uuid for sample in reading.samples}
        assert {sample.uuid for sample in walked.samples} == seen
        assert all((getattr(sample, name) or 0) >= 0 for sample in walked.samples for name in COUNTERS)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=10))
def test_without_a_reset_the_deltas_add_up(added: list[int]) -> None:
    totals = [sum(added[: i + 1]) for i in range(len(added))]
    walked = steps([devices([total]) for total in totals])
    assert sum(only(reading).energy_millijoules or 0 for reading in walked) == totals[-1] - totals[0]
