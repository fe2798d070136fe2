"""Each occurrence of a fault once, whoever reports it, in any order; and bounded memory."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.faults import faults as module
from collectors.faults.faults import Faults, event_row
from collectors.faults.xid import fault
from collectors.samples import DeviceEvent

if TYPE_CHECKING:
    import random

NOW = 1_800_000_000_000_000_000
SECOND = 1_000_000_000
PCI = "00000000:1B:00.0"
DEVICES = {PCI: "GPU-a", "00000000:1C:00.0": "GPU-b"}
BOTH = ("kernel_log", "nvml")


def logged(code: int, at: float = 0, event_id: str = "", pci: str = PCI) -> DeviceEvent:
    judged = fault("xid", code)
    return DeviceEvent(
        NOW + round(at * SECOND), None, "xid", code, source="kernel_log", severity=judged.severity,
        fault_class=judged.fault_class, pci_bus_id=pci, pid=7, event_id=event_id or f"boot/{code}/{at}/{pci}",
    )  # fmt: skip


def told(code: int, at: float = 0, event_id: str = "", uuid: str | None = "GPU-a") -> DeviceEvent:
    judged = fault("xid", code)
    return DeviceEvent(
        NOW + round(at * SECOND), uuid, "xid", code, source="nvml", severity=judged.severity,
        fault_class=judged.fault_class, event_id=event_id or f"nvml/{code}/{at}/{uuid}",
    )  # fmt: skip


def sources(events: tuple[DeviceEvent, ...]) -> list[tuple[str, int]]:
    return [(event.source, event.code) for event in events]


def add(faults: Faults, *events: DeviceEvent, at: float = 0) -> list[tuple[str, int]]:
    return sources(faults.add(events, NOW + round(at * SECOND), DEVICES))


def test_an_address_becomes_the_device() -> None:
    faults = Faults(BOTH)
    (event,) = faults.add([logged(48)], NOW, DEVICES)
    assert (event.uuid, event.pci_bus_id) == ("GPU-a", PCI)
    assert faults.counts == {("GPU-a", "xid", 48, "critical"): 1}
    (switch,) = faults.add([dataclasses.replace(logged(20034, pci="00000000:C1:00.0"), code_space="sxid")], NOW, {})
    assert switch.uuid is None
    assert ("00000000:C1:00.0", "sxid", 20034, "warn") in faults.counts


def test_the_log_wins_over_nvml_for_one_occurrence() -> None:
    faults = Faults(BOTH)
    assert add(faults, told(79)) == []
    assert add(faults, logged(79, at=0.4), at=1) == [("kernel_log", 79)]
    assert add(faults, at=60) == []
    assert faults.counts.total() == 1


def test_the_log_may_come_first() -> None:
    faults = Faults(BOTH)
    assert add(faults, logged(79)) == [("kernel_log", 79)]
    assert add(faults, told(79, at=1), at=1) == []
    assert add(faults, at=60) == []


def test_nvml_alone_is_believed_after_five_seconds() -> None:
    faults = Faults(BOTH)
    assert add(faults, told(79)) == []
    assert add(faults, at=4.9) == []
    assert add(faults, at=5) == [("nvml", 79)]
    assert faults.counts.total() == 1


@pytest.mark.parametrize("reading", [(), ("nvml",)])
def test_without_a_log_nvml_waits_for_nobody(reading: tuple[str, ...]) -> None:
    assert add(Faults(reading), told(79)) == [("nvml", 79)]


def test_what_waits_is_let_go_when_the_log_is_read_no_more() -> None:
    faults = Faults(BOTH)
    assert add(faults, told(79)) == []
    faults.sources = ("nvml",)
    assert add(faults, at=1) == [("nvml", 79)]


def test_even_if_nobody_said_what_is_read_an_occurrence_counts_once() -> None:
    faults = Faults()
    assert add(faults, told(79)) == [("nvml", 79)]
    assert add(faults, logged(79, at=0.5), at=1) == []


def test_two_are_two() -> None:
    """dcgm-exporter#190: an Xid twice is two events, from either witness or from both."""
    for reading in (BOTH, ()):
        faults = Faults(reading)
        found = add(faults, told(31, event_id="1"), told(31, event_id="2"), logged(31, 0.1), logged(31, 0.2), at=1)
        found += add(faults, at=60)
        assert len(found) == 2
        assert faults.counts == {("GPU-a", "xid", 31, "info"): 2}


def test_a_second_one_that_the_log_missed_is_still_counted() -> None:
    faults = Faults(BOTH)
    found = add(faults, told(31, event_id="1"), told(31, event_id="2"), logged(31, 0.1), at=1) + add(faults, at=60)
    assert sorted(found) == [("kernel_log", 31), ("nvml", 31)]


def test_one_line_in_the_log_stands_for_one_report_of_nvml() -> None:
    faults = Faults(BOTH)
    found = add(faults, logged(31), told(31, 0.1, "1"), told(31, 0.2, "2"), at=1) + add(faults, at=60)
    assert found == [("kernel_log", 31), ("nvml", 31)]


def test_dcgm_235_an_xid_masked_by_another_counts_as_both() -> None:
    faults = Faults(BOTH)
    found = add(faults, told(45), logged(62), logged(45, 0.1), at=1) + add(faults, at=60)
    assert found == [("kernel_log", 62), ("kernel_log", 45)]


def test_other_devices_other_codes_and_other_times_are_other_occurrences() -> None:
    faults = Faults(BOTH)
    found = add(faults, logged(31), told(31, uuid="GPU-b"), told(13), told(31, at=6, event_id="later"), at=6)
    found += add(faults, at=60)
    assert found == [("kernel_log", 31), ("nvml", 31), ("nvml", 31), ("nvml", 13)]


def test_a_device_that_nvml_cannot_name_any_more_is_the_one_in_the_log() -> None:
    faults = Faults(BOTH)
    assert add(faults, told(79, uuid=None), logged(79), at=1) == [("kernel_log", 79)]
    assert add(faults, at=60) == []


def test_the_same_report_again_is_no_news() -> None:
    faults = Faults(BOTH)
    assert len(add(faults, *[logged(48)] * 1000)) == 1
    assert add(faults, logged(48), at=1000) == []


def test_dcgm_exporter_500_a_sticky_gauge_is_a_hint_while_there_is_no_witness() -> None:
    page = DeviceEvent(NOW, "GPU-a", "xid", 79)
    faults = Faults(("page",))
    (event,) = faults.add([page], NOW, DEVICES)
    assert (event.severity, event.fault_class, event.source) == ("critical", "reboot", "page")
    assert event.event_id
    for reading in (("nvml", "page"), ("kernel_log", "page")):
        assert Faults(reading).add([page], NOW, DEVICES) == ()


def test_an_event_without_a_time_gets_that_of_its_arrival() -> None:
    (event,) = Faults().add([dataclasses.replace(logged(48), ts_nanoseconds=None)], NOW, DEVICES)
    assert event_row(event).event_microsecond == NOW // 1000


def test_an_event_as_a_row() -> None:
    (event,) = Faults().add([dataclasses.replace(logged(48), text="x" * 300, event_id="y" * 300)], NOW, DEVICES)
    row = event_row(event)
    assert (row.device, row.pci_bus_id, row.code_space, row.code, row.pid) == ("GPU-a", PCI, "xid", 48, 7)
    assert (row.severity, row.fault_class, row.source) == ("critical", "reset", "kernel_log")
    assert (len(row.text or ""), len(row.event_id)) == (256, 64)


def test_nothing_that_is_logged_fills_the_memory() -> None:
    faults = Faults(BOTH)
    for batch in range(12):
        events = [
            logged(code, at=batch, event_id=f"{batch}/{code}") for code in range(1000 * batch, 1000 * batch + 1000)
        ]
        faults.add([*events, *[told(13, event_id=f"{batch}/{n}") for n in range(1000)]], NOW, DEVICES)
    assert len(faults._seen) <= module.MOST_REMEMBERED
    assert sum(len(held) for held in faults._waiting.values()) <= module.MOST_PER_CODE
    assert len(faults.counts) <= module.MOST_COUNTED
    assert faults.counts.total() + faults.uncounted >= 12_000
    assert len(faults._alone) <= module.MOST_COUNTED + 1


@given(
    st.lists(st.tuples(st.sampled_from([31, 45, 62, 79]), st.sampled_from(list(DEVICES))), max_size=8),
    st.randoms(use_true_random=False),
)
def test_any_order_of_two_full_witnesses_yields_each_occurrence_once(
    happened: list[tuple[int, str]], shuffle: random.Random
) -> None:
    reports = [
        report
        for number, (code, pci) in enumerate(happened)
        for report in (
            logged(code, number / 10, f"log/{number}", pci),
            told(code, number / 10, f"nvml/{number}", DEVICES[pci]),
        )
    ]
    shuffle.shuffle(reports)
    faults = Faults(BOTH)
    found = [event for report in reports for event in faults.add([report], NOW + SECOND, DEVICES)]
    found += faults.add((), NOW + 60 * SECOND, DEVICES)
    expected = Counter((code, DEVICES[pci]) for code, pci in happened)
    assert Counter((event.code, event.uuid) for event in found) == expected
    assert {event.source for event in found} <= {"kernel_log"}
