"""What devices report by themselves, as events of a reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.collectors.nvml_machines import START_NS, Watched, dgx, seven
from tests.nvml_shim.machine import uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.nvml_shim.machine import Machine


@pytest.fixture
def watched(machine: Machine) -> Iterator[Watched]:
    machine.describe(dgx(2))
    made = Watched()
    yield made
    made.nvml.close()
    assert machine.library.shim_event_sets_alive() == 0


def told(watched: Watched, seconds: float = 1) -> list[tuple[str | None, int]]:
    return [(event.uuid, event.code) for event in watched.visit(seconds).events]


def test_dcgm_exporter_190_the_same_xid_twice_is_two_events(machine: Machine, watched: Watched) -> None:
    watched.visit()
    machine.change({"*.events": "0:31 0:31 1:79"})
    first, second, third = watched.visit().events
    assert (first.uuid, first.code_space, first.code, first.source) == (uuid(0), "xid", 31, "nvml")
    assert (first.severity, first.fault_class, first.ts_nanoseconds) == (
        "info",
        "application",
        START_NS + 2_000_000_000,
    )
    assert (third.uuid, third.code, third.severity, third.fault_class) == (uuid(1), 79, "critical", "reboot")
    assert len({first.event_id, second.event_id, third.event_id}) == 3
    assert watched.visit().events == ()


def test_the_last_word_of_a_device_that_is_lost_by_now(machine: Machine, watched: Watched) -> None:
    watched.visit()
    machine.change({"*.events": "1:79", "1.ALL": "!15"})
    reading = watched.visit()
    assert [(event.uuid, event.code) for event in reading.events] == [(uuid(1), 79)]
    assert [sample.state for sample in reading.samples] == ["ok", "lost"]


def test_draining_never_waits(machine: Machine, watched: Watched) -> None:
    watched.visit()
    asked = machine.asked("wait")
    watched.visit()
    assert machine.asked("wait") == asked + 1


def test_kinds_without_an_xid(machine: Machine, watched: Watched) -> None:
    """Corrected memory errors are a counter; a change of instances is no fault; what is unheard of is passed on."""
    watched.visit()
    machine.change({"*.events": "0:0:1 0:0:256 0:0:2 0:3:32768 0:9:65536"})
    events = watched.visit().events
    assert [(event.code_space, event.code, event.text) for event in events] == [
        ("nvml", 0x2, "ecc_uncorrected 0"),
        ("nvml", 0x8000, "recovery_action 3"),
        ("nvml", 0x10000, "65536 9"),
    ]
    assert [event.severity for event in events] == ["critical", "warn", "warn"]


def test_an_event_in_an_instance_names_it(machine: Machine, watched: Watched) -> None:
    machine.change(seven(1))
    watched.visit()
    machine.change({"*.events": "1:43:8:9:0"})
    (event,) = watched.visit().events
    assert (event.uuid, event.code, event.gpu_instance_id, event.compute_instance_id) == (uuid(1), 43, 9, 0)


def test_a_board_that_comes_back_is_listened_to_again(machine: Machine, watched: Watched) -> None:
    watched.visit()
    machine.change({"1.ALL": "!15"})
    watched.visit()
    machine.change({"1.ALL": None})
    watched.visit(61)
    machine.change({"*.events": "1:48"})
    assert told(watched) == [(uuid(1), 48)]


def test_a_set_that_a_lost_board_spoils_is_made_anew(machine: Machine, watched: Watched) -> None:
    machine.change({"*.events_from_now": 1})
    watched.visit()
    machine.change({"1.ALL": "!15", "*.spoilt_sets": 1})
    assert told(watched) == []
    machine.change({"*.events": "0:31 0:31"})
    assert told(watched) == [(uuid(0), 31), (uuid(0), 31)]
    machine.change({"*.events": "0:31 0:31 0:48"})
    assert told(watched) == [(uuid(0), 48)]
    assert machine.library.shim_event_sets_alive() == 1


def test_what_waits_in_the_old_set_is_taken_before_it_goes(machine: Machine, watched: Watched) -> None:
    machine.change({"*.events_from_now": 1})
    watched.visit()
    machine.change({"*.events": "!15 !15 !15 !15 0:31 0:31"})
    assert told(watched) == [(uuid(0), 31), (uuid(0), 31)]


def test_a_storm_is_taken_in_parts(machine: Machine, watched: Watched) -> None:
    watched.visit()
    machine.change({"*.events": " ".join(["0:13"] * 500)})
    assert len(told(watched)) == 500


@pytest.mark.parametrize("code", [3, 999])
def test_a_driver_without_events_is_watched_all_the_same(machine: Machine, code: int) -> None:
    machine.change({"*.event_set": f"!{code}"})
    watched = Watched()
    for _ in range(3):
        reading = watched.visit()
        assert ([sample.state for sample in reading.samples], reading.events) == (["ok"], ())
    watched.nvml.close()
