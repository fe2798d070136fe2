"""Events that devices report, a driver that hangs, and a machine that changes while it is watched."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from collectors.nvml.port import NvmlPort
from collectors.nvml.values import DeviceLostError, Event, Reading, Reason
from tests.nvml_shim.machine import h100, uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.nvml_shim.machine import Machine


@pytest.fixture
def port(machine: Machine) -> Iterator[NvmlPort]:
    machine.change({"*.count": 2, **h100(1)})
    with NvmlPort.open() as opened:
        yield opened


def xid(index: int, code: int) -> Reading[Event]:
    return Reading(Event(uuid(index), "xid", code, None, None))


def test_the_same_xid_twice_then_a_fatal_one_then_the_device_is_lost(machine: Machine, port: NvmlPort) -> None:
    machine.change({"*.events": "0:31 0:31 1:79 !15"})
    with port.events(port.devices()) as watch:
        assert [watch.wait(10) for _ in range(3)] == [xid(0, 31), xid(0, 31), xid(1, 79)]
        with pytest.raises(DeviceLostError) as caught:
            watch.wait(10)
        assert caught.value.uuid is None
        assert watch.wait(10) == Reading(None, Reason.TIMEOUT, 10)
        machine.change({"*.events": "0:31 0:31 1:79 !15 0:48"})
        assert watch.wait(10) == xid(0, 48)
        assert machine.library.shim_event_sets_alive() == 1
    assert machine.library.shim_event_sets_alive() == 0


def test_the_event_of_a_device_that_is_lost_by_now_still_counts(machine: Machine, port: NvmlPort) -> None:
    with port.events(port.devices()) as watch:
        machine.change({"*.events": "1:79", "1.ALL": "!15"})
        assert watch.wait(10) == xid(1, 79)


def test_events_of_other_kinds(machine: Machine, port: NvmlPort) -> None:
    machine.change({"*.events": "0:0:256 0:43:8:7:0 0:1:65536"})
    with port.events(port.devices()) as watch:
        assert watch.wait(10) == Reading(Event(uuid(0), "mig_changed", 0, None, None))
        assert watch.wait(10) == Reading(Event(uuid(0), "xid", 43, 7, 0))
        assert watch.wait(10) == Reading(Event(uuid(0), "65536", 1, None, None))


def test_a_device_without_events_is_named_and_the_others_are_watched(machine: Machine, port: NvmlPort) -> None:
    """The driver refuses a mask with one type too many: only what is supported is asked for."""
    machine.change({"0.event_types": "0x8", "1.event_types": None, "*.events": "0:31"})
    with port.events(port.devices()) as watch:
        assert watch.unwatched == {uuid(1): Reason.NOT_SUPPORTED}
        assert machine.library.shim_registered() == 0x8
        assert watch.wait(10) == xid(0, 31)


def test_a_watch_is_not_woken_for_changes_of_clocks(machine: Machine, port: NvmlPort) -> None:
    with port.events(port.devices()):
        assert machine.library.shim_registered() == 0x1 | 0x2 | 0x8 | 0x100


def test_a_device_lost_while_registering_is_named(machine: Machine, port: NvmlPort) -> None:
    devices = port.devices()
    machine.change({"1.register": "!15"})
    with port.events(devices) as watch:
        assert watch.unwatched == {uuid(1): None}


def test_the_set_is_freed_when_waiting_fails(machine: Machine, port: NvmlPort) -> None:
    machine.change({"*.events": "!15"})
    with pytest.raises(DeviceLostError), port.events(port.devices()) as watch:
        watch.wait(10)
    assert machine.library.shim_event_sets_alive() == 0


def test_a_hanging_driver_is_seen_from_another_thread(machine: Machine, port: NvmlPort) -> None:
    """The interpreter runs on during the call, so a watchdog in the same process can tell that it hangs."""
    (device, other) = port.devices()
    machine.change({"0.power_mw.sleep_ms": 600})
    done = threading.Event()
    found: list[Reading[int]] = []

    def read() -> None:
        found.append(device.power_mw())
        done.set()

    reader = threading.Thread(target=read)
    reader.start()
    ticks = 0
    while not done.wait(0.02) and ticks < 10:
        assert other.power_mw().value == 412_345, "no lock of the port is held meanwhile"
        ticks += 1
    assert ticks == 10
    assert not found
    reader.join(10)
    assert found == [Reading(412_345)]


def test_a_machine_that_changes_while_it_is_watched(machine: Machine, port: NvmlPort) -> None:
    device = port.devices()[0]
    seen = []
    for power_mw in (100_000, "!4", "!15", 300_000):
        machine.change({"0.power_mw": power_mw})
        try:
            seen.append(device.power_mw().value)
        except DeviceLostError:
            seen.append("lost")
    assert seen == [100_000, None, "lost", 300_000]


def test_a_wait_ends_at_its_timeout(machine: Machine, port: NvmlPort) -> None:
    with port.events(port.devices()) as watch:
        start = time.monotonic()
        assert watch.wait(50).reason is Reason.TIMEOUT
        assert time.monotonic() - start >= 0.05
    assert machine.asked("wait") == 1, "no event is an answer, not a failure to try again"
