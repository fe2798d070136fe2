"""Readings of a device through the true binding: every unit, every error code, what stays the same."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from collectors.nvml.port import NvmlPort
from collectors.nvml.values import (
    DeviceLostError,
    DeviceNeedsResetError,
    DriverAbsentError,
    DriverMismatchError,
    Memory,
    NvmlError,
    Reading,
    Reason,
    RemappedRows,
)
from fleet.errors import MissingDependencyError
from tests.nvml_shim.machine import GIB, h100, uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.nvml.port import NvmlDevice
    from tests.nvml_shim.machine import Machine


@pytest.fixture
def port(machine: Machine) -> Iterator[NvmlPort]:
    with NvmlPort.open() as opened:
        yield opened


@pytest.fixture
def device(port: NvmlPort) -> NvmlDevice:
    (only,) = port.devices()
    return only


def test_identity(port: NvmlPort, device: NvmlDevice) -> None:
    found = device.identity()
    assert (found.uuid, found.index) == (uuid(0), 0)
    assert found.name == Reading("NVIDIA H100 80GB HBM3")
    assert found.serial == Reading("1650923000000")
    assert found.pci_bus_id == Reading("00000000:1B:00.0")
    assert found.architecture == Reading("hopper")
    assert found.minor_number == Reading(0)
    assert port.driver_version() == Reading("550.127.08")


def test_units(device: NvmlDevice) -> None:
    assert device.utilization().gpu_percent == Reading(97)
    assert device.utilization().memory_percent == Reading(41)
    assert device.memory() == Reading(Memory(80 * GIB, 60 * GIB, Reading(GIB // 2)))
    assert device.power_mw() == Reading(412_345)
    assert device.power_limit_mw() == Reading(700_000)
    assert device.energy_mj() == Reading(55_491_669_881)
    assert device.clock_mhz("sm") == Reading(1755)
    assert device.clock_mhz("memory") == Reading(2619)
    assert device.performance_state() == Reading(0)
    assert device.temperature_celsius() == Reading(61)
    assert device.temperature_margin_celsius() == Reading(26)
    assert device.throttle_bits() == Reading(4)
    assert device.remapped_rows() == Reading(RemappedRows(2, 1, pending=True, failed=False))
    assert device.pcie_replay_events() == Reading(7)
    assert device.pcie_bytes_per_second("tx") == Reading(2 * 2**20)
    assert device.pcie_bytes_per_second("rx") == Reading(2**20)


def test_ecc_counts_are_four_different_things(device: NvmlDevice) -> None:
    assert device.ecc_errors(corrected=True, aggregate=False) == Reading(3)
    assert device.ecc_errors(corrected=False, aggregate=False) == Reading(0)
    assert device.ecc_errors(corrected=True, aggregate=True) == Reading(12)
    assert device.ecc_errors(corrected=False, aggregate=True) == Reading(1)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (2, Reason.NOT_FOUND),
        (3, Reason.NOT_SUPPORTED),
        (4, Reason.NO_PERMISSION),
        (6, Reason.NOT_FOUND),
        (7, Reason.UNKNOWN),
        (10, Reason.TIMEOUT),
        (13, Reason.FUNCTION_MISSING),
        (14, Reason.UNKNOWN),  # corrupted InfoROM: the number is kept, so that it can be told
        (19, Reason.UNKNOWN),
        (23, Reason.UNKNOWN),
        (25, Reason.FUNCTION_MISSING),
        (27, Reason.UNKNOWN),
        (999, Reason.UNKNOWN),
        (1234, Reason.UNKNOWN),  # no class of its own in the binding
    ],
)
def test_a_code_is_a_reason_and_never_a_zero(machine: Machine, device: NvmlDevice, code: int, reason: Reason) -> None:
    machine.change({"0.power_mw": f"!{code}"})
    assert device.power_mw() == Reading(None, reason, code)
    assert device.energy_mj().value == 55_491_669_881


@pytest.mark.parametrize(
    ("code", "error"),
    [(9, DriverAbsentError), (15, DeviceLostError), (16, DeviceNeedsResetError), (18, DriverMismatchError)],
)
def test_what_concerns_the_whole_device_or_driver_is_an_exception(
    machine: Machine, device: NvmlDevice, code: int, error: type[NvmlError]
) -> None:
    machine.change({"0.util_gpu": f"!{code}"})
    with pytest.raises(error) as caught:
        device.utilization()
    assert getattr(caught.value, "uuid", uuid(0)) == uuid(0)


@pytest.mark.parametrize(
    ("code", "error"),
    [(9, DriverAbsentError), (12, DriverAbsentError), (18, DriverMismatchError), (999, NvmlError)],
)
def test_a_driver_that_does_not_start(machine: Machine, code: int, error: type[NvmlError]) -> None:
    machine.change({"*.init": f"!{code}"})
    with pytest.raises(error):
        NvmlPort.open()


def test_the_binding_is_missed_when_the_port_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(MissingDependencyError, match=r"install gputally\[agent\]"):
        NvmlPort.open()


def test_an_uninitialized_library_is_initialized_again(machine: Machine, device: NvmlDevice) -> None:
    machine.library.nvmlShutdown()
    assert device.power_mw() == Reading(412_345)


def test_a_lost_device_leaves_the_others_readable(machine: Machine, port: NvmlPort) -> None:
    machine.change({"*.count": 4, **h100(1), **h100(2), **h100(3), "1.ALL": "!15", "2.handle": "!15", "3.handle": "!2"})
    first, lost, lost_at_lookup, gone = port.slots()
    assert first.device
    assert first.device.uuid == uuid(0)
    assert isinstance(lost.error, DeviceLostError)
    assert isinstance(lost_at_lookup.error, DeviceLostError)
    assert (gone.device, gone.error, gone.reason) == (None, None, Reason.NOT_FOUND)
    machine.change({"1.ALL": None, "2.handle": None})
    assert [found.uuid for found in port.devices()] == [uuid(0), uuid(1), uuid(2)]


def test_a_device_that_vanished_is_not_listed(machine: Machine, port: NvmlPort) -> None:
    machine.change({"*.count": 0})
    assert port.slots() == ()


def test_an_unknown_count_is_not_zero(machine: Machine, port: NvmlPort) -> None:
    machine.change({"*.count": "!999"})
    with pytest.raises(NvmlError, match="how many devices"):
        port.slots()


def test_uuid_and_not_index_is_the_identity(machine: Machine, device: NvmlDevice) -> None:
    """The driver renumbers after a device was lost; the handle at hand still means the same device."""
    machine.change({"0.minor": 5})
    assert (device.uuid, device.identity().minor_number.value) == (uuid(0), 5)


def test_what_is_not_supported_is_asked_once(machine: Machine, port: NvmlPort, device: NvmlDevice) -> None:
    machine.change({"0.pcie_replays": None, "0.clock0": None})
    for _ in range(3):
        assert device.pcie_replay_events().reason is Reason.NOT_SUPPORTED
        assert device.clock_mhz("graphics").reason is Reason.NOT_SUPPORTED
    assert (machine.asked("0.pcie_replays"), machine.asked("0.clock0")) == (1, 1)
    assert device.clock_mhz("sm") == Reading(1755), "another variant of the call is another question"
    machine.change({"0.pcie_replays": 9})
    port.forget(uuid(0))
    assert device.pcie_replay_events() == Reading(9)


def test_what_is_not_permitted_is_asked_again(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.power_mw": "!4"})
    assert device.power_mw().reason is Reason.NO_PERMISSION
    machine.change({"0.power_mw": 1})
    assert device.power_mw() == Reading(1)


def test_a_timeout_is_tried_once_more(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.power_mw": "!10"})
    assert device.power_mw().reason is Reason.TIMEOUT
    assert machine.asked("0.power_mw") == 2


def test_a_binding_older_than_a_call(device: NvmlDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("pynvml.nvmlDeviceGetMarginTemperature")
    monkeypatch.delattr("pynvml.nvmlDeviceGetTemperatureV")
    assert device.temperature_margin_celsius() == Reading(None, Reason.FUNCTION_MISSING, 13)
    assert device.temperature_celsius() == Reading(61)


def test_a_mismatch_of_the_binding_is_a_missing_function(
    machine: Machine, device: NvmlDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The binding has an error that is none of NVML's: its calls without a version raise it."""
    pynvml = sys.modules["pynvml"]
    monkeypatch.setattr(pynvml, "nvmlDeviceGetPowerUsage", pynvml.throwOnVersionMismatch(_missing))
    assert device.power_mw() == Reading(None, Reason.FUNCTION_MISSING, 13)


def _missing(handle: object) -> None:
    error: Exception = sys.modules["pynvml"].NVMLError(13)
    raise error
