"""MIG instances, and activity between two samples of whole devices and of instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collectors.nvml.port import NvmlPort
from collectors.nvml.values import DeviceLostError, Memory, MigAttributes, MigMode, Reading, Reason
from tests.nvml_shim.machine import GIB, uuid

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
    return port.devices()[0]


def instance(slot: int, gi: int, sms: int, slices: int, gib: int) -> dict[str, object]:
    facts = {
        "uuid": f"MIG-{slot:08x}-0000-5000-8000-000000000000",
        "gi": gi,
        "ci": 0,
        "attributes": f"{sms} {slices} {slices} {gib * 1024}",
        "mem_total": gib * GIB,
        "mem_used": GIB,
    }
    return {f"0.mig{slot}.{key}": value for key, value in facts.items()}


MIG_ON = {"0.mig_mode": 1, "0.mig_pending": 1, "0.mig_max": 7, "0.util_gpu": "!3", "0.putil": "!3"}
SEVEN = {key: value for slot in range(7) for key, value in instance(slot, slot + 7, 16, 1, 10).items()}
THREE_AND_FOUR = instance(0, 1, 64, 4, 40) | instance(1, 2, 60, 3, 40)


def test_seven_small_instances(machine: Machine, device: NvmlDevice) -> None:
    machine.change({**MIG_ON, **SEVEN})
    assert device.mig_mode() == Reading(MigMode(enabled=True, pending=True))
    found = device.mig_instances().known
    assert [mig.gpu_instance_id for mig in found] == [7, 8, 9, 10, 11, 12, 13]
    assert {mig.compute_instance_id for mig in found} == {0}
    assert len({mig.device.uuid for mig in found}) == 7
    assert {mig.parent.uuid for mig in found} == {uuid(0)}
    assert sum(mig.device.mig_attributes().known.compute_slices for mig in found) == 7


def test_two_large_instances(machine: Machine, device: NvmlDevice) -> None:
    machine.change({**MIG_ON, **THREE_AND_FOUR})
    four, three = device.mig_instances().known
    assert four.device.mig_attributes() == Reading(MigAttributes(64, 4, 4, 40 * GIB))
    assert three.device.mig_attributes() == Reading(MigAttributes(60, 3, 3, 40 * GIB))
    assert three.device.power_mw().reason is Reason.NOT_SUPPORTED, "power is a matter of the board"
    assert device.utilization().gpu_percent.reason is Reason.NOT_SUPPORTED


def test_dcgm_exporter_380_an_instance_has_memory_of_its_own(machine: Machine, device: NvmlDevice) -> None:
    machine.change({**MIG_ON, **THREE_AND_FOUR, "0.mig1.mem_used": 2 * GIB})
    assert [mig.device.memory() for mig in device.mig_instances().known] == [
        Reading(Memory(40 * GIB, GIB, Reading(0))),
        Reading(Memory(40 * GIB, 2 * GIB, Reading(0))),
    ]


def test_an_empty_slot_between_two_instances(machine: Machine, device: NvmlDevice) -> None:
    machine.change({**MIG_ON, **SEVEN, "0.mig2.uuid": None})
    assert [mig.gpu_instance_id for mig in device.mig_instances().known] == [7, 8, 10, 11, 12, 13]


def test_an_instance_that_goes_while_it_is_read(machine: Machine, device: NvmlDevice) -> None:
    machine.change({**MIG_ON, **THREE_AND_FOUR, "0.mig0.gi": "!6"})
    assert [mig.gpu_instance_id for mig in device.mig_instances().known] == [2]


@pytest.mark.parametrize("key", ["0.mig_max", "0.mig1.uuid", "0.mig1.gi", "0.mig1.ci"])
def test_half_a_list_of_instances_is_no_list(machine: Machine, device: NvmlDevice, key: str) -> None:
    machine.change({**MIG_ON, **SEVEN, key: "!999"})
    assert device.mig_instances() == Reading(None, Reason.UNKNOWN, 999)


def test_a_device_without_instances(machine: Machine, port: NvmlPort, device: NvmlDevice) -> None:
    assert device.mig_mode() == Reading(MigMode(enabled=False, pending=False))
    assert device.mig_instances() == Reading(None, Reason.NOT_SUPPORTED, 3)
    machine.change({"0.mig_max": 7})
    port.forget(device.uuid)
    assert device.mig_instances() == Reading(())
    assert device.mig_attributes().reason is Reason.NOT_SUPPORTED
    machine.change({"0.mig_mode": None})
    assert device.mig_mode() == Reading(None, Reason.NOT_SUPPORTED, 3)


def test_a_lost_device_has_no_instances_to_tell(machine: Machine, device: NvmlDevice) -> None:
    machine.change({**MIG_ON, **SEVEN, "0.ALL": "!15"})
    with pytest.raises(DeviceLostError):
        device.mig_instances()


METRICS = {
    "0.gpm1": 99.5,
    "0.gpm2": 41.5,
    "0.gpm3": 20.25,
    "0.gpm5": 12.25,
    "0.gpm10": 77.0,
    "0.gpm20": 2.5,
    "0.gpm60": 1024,
}


def test_activity_between_two_samples(machine: Machine, port: NvmlPort, device: NvmlDevice) -> None:
    machine.change(METRICS)
    with port.gpm(device) as meter:
        found = meter.read().known
        assert found.graphics_percent == Reading(99.5)
        assert found.sm_percent == Reading(41.5)
        assert found.occupancy_percent == Reading(20.25)
        assert found.tensor_percent == Reading(12.25)
        assert found.dram_percent == Reading(77.0)
        assert found.pcie_tx_bytes_per_second == Reading(5 * 2**19)
        assert found.pcie_rx_bytes_per_second == Reading(None, Reason.NOT_SUPPORTED, 3)
        assert found.nvlink_rx_bytes_per_second == Reading(2**30)
        machine.change({"0.gpm2": "samples"})
        assert meter.read().known.sm_percent == Reading(1.0), "each sample is the next one's first"
        assert machine.library.shim_samples_alive() == 2
    assert machine.library.shim_samples_alive() == 0


def test_dcgm_310_samples_too_close_are_waited_for(machine: Machine, port: NvmlPort, device: NvmlDevice) -> None:
    """The library refuses two samples of one moment; asked in a row, the meter waits and never answers noise."""
    machine.change(METRICS)
    with port.gpm(device) as meter:
        assert [meter.read().reason for _ in range(3)] == [None, None, None]


@pytest.mark.parametrize(
    ("value", "reason"), [("100.5", Reason.OUT_OF_RANGE), ("nan", Reason.OUT_OF_RANGE), ("-1", Reason.OUT_OF_RANGE)]
)
def test_an_impossible_metric(machine: Machine, port: NvmlPort, device: NvmlDevice, value: str, reason: Reason) -> None:
    machine.change({**METRICS, "0.gpm2": value})
    with port.gpm(device) as meter:
        found = meter.read().known
    assert (found.sm_percent, found.dram_percent) == (Reading(None, reason), Reading(77.0))


def test_activity_of_a_mig_instance(machine: Machine, port: NvmlPort, device: NvmlDevice) -> None:
    machine.change({**MIG_ON, **THREE_AND_FOUR, **METRICS, "0.gi1.gpm2": 80, "0.gi2.gpm2": 5})
    four, three = device.mig_instances().known
    with port.gpm(four) as busy, port.gpm(three) as calm:
        assert busy.read().known.sm_percent == Reading(80.0)
        assert calm.read().known.sm_percent == Reading(5.0)
        assert calm.read().known.dram_percent.reason is Reason.NOT_SUPPORTED
    assert machine.library.shim_samples_alive() == 0


@pytest.mark.parametrize("answer", [0, "!3"])
def test_a_device_that_cannot_be_metered(machine: Machine, port: NvmlPort, device: NvmlDevice, answer: object) -> None:
    machine.change({"0.gpm": answer})
    with port.gpm(device) as meter:
        assert meter.read().reason is Reason.NOT_SUPPORTED
    assert machine.library.shim_samples_alive() == 0


def test_samples_are_freed_when_the_device_is_lost(machine: Machine, port: NvmlPort, device: NvmlDevice) -> None:
    with port.gpm(device) as meter:
        machine.change({"0.ALL": "!15"})
        with pytest.raises(DeviceLostError):
            meter.read()
    assert machine.library.shim_samples_alive() == 0
    machine.change({"0.ALL": None, "0.gpm_sample": "!15"})
    with pytest.raises(DeviceLostError), port.gpm(device):
        pass
    assert machine.library.shim_samples_alive() == 0


def test_a_complaint_about_the_first_does_not_keep_the_second(
    machine: Machine, port: NvmlPort, device: NvmlDevice
) -> None:
    with port.gpm(device):
        machine.change({"*.gpm_free": "!15"})
    assert machine.library.shim_samples_alive() == 0


def test_samples_are_freed_when_the_second_cannot_be_had(machine: Machine, port: NvmlPort, device: NvmlDevice) -> None:
    machine.change({"*.gpm_alloc": 1})
    with port.gpm(device) as meter:
        assert meter.read() == Reading(None, Reason.UNKNOWN, 20)
    assert machine.library.shim_samples_alive() == 0


def test_samples_are_freed_when_the_first_cannot_be_taken(machine: Machine, port: NvmlPort, device: NvmlDevice) -> None:
    machine.change({"0.gpm_sample": "!999"})
    with port.gpm(device) as meter:
        assert meter.read() == Reading(None, Reason.UNKNOWN, 999)
    assert machine.library.shim_samples_alive() == 0
