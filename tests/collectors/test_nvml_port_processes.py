"""Processes on a device: what the driver says, and what of it can be believed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from collectors.nvml.port import NvmlPort
from collectors.nvml.processes import host_has_pid
from collectors.nvml.values import DeviceLostError, Process, Processes, ProcessSample, ProcessSamples, Reading, Reason
from tests.nvml_shim.machine import GIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.nvml.port import NvmlDevice
    from tests.nvml_shim.machine import Machine

KNOWN = {4242, 4243, 4244}


@pytest.fixture
def device(machine: Machine) -> Iterator[NvmlDevice]:
    with NvmlPort.open() as port:
        yield port.devices()[0]


def process(pid: int, memory_bytes: int | None) -> Process:
    return Process(pid, memory_bytes, None, None)


def sample(pid: int, timestamp_us: int, sm_percent: int) -> ProcessSample:
    return ProcessSample(pid, timestamp_us, sm_percent, 0, 0, 0)


def test_nobody_holds_the_device(device: NvmlDevice) -> None:
    assert device.processes() == Reading(Processes(()))


def test_three_kinds_of_processes(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.procs": "4242:1000", "0.graphics_procs": "4243:2000", "0.mps_procs": "4244:3000"})
    assert device.processes() == Reading(Processes((process(4242, 1000),)))
    assert device.processes("graphics") == Reading(Processes((process(4243, 2000),)))
    assert device.processes("mps") == Reading(Processes((process(4244, 3000),)))


def test_unknown_memory_of_a_process_is_none_and_not_zero(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.procs": "4242:1000 4243:-"})
    assert device.processes() == Reading(Processes((process(4242, 1000), process(4243, None))))


def test_a_process_in_a_mig_instance_says_which(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.procs": "4242:1000:7:0"})
    assert device.processes().known.rows == (Process(4242, 1000, 7, 0),)


@pytest.mark.parametrize("memory", ["1000000", "-"])
def test_pynvml_50_records_of_another_size(machine: Machine, device: NvmlDevice, memory: str) -> None:
    """R535 writes 32 bytes a row, the binding reads 24: (4242, 1000000), (384, 4243), ... The older call is right."""
    machine.change({"*.process_bytes": 32, "0.procs": f"4242:{memory} 4243:2000000 4244:3000000"})
    first = None if memory == "-" else 1_000_000
    expected = Processes((process(4242, first), process(4243, 2_000_000), process(4244, 3_000_000)))
    assert device.processes(pid_exists=KNOWN.__contains__) == Reading(expected)
    assert device.processes() == Reading(expected), "seen without the host's process list too"


@pytest.mark.parametrize("row", ["384:4243:2000000:0", "4194305:500", "0:500"])
def test_a_row_made_of_pieces_of_others(machine: Machine, device: NvmlDevice, row: str) -> None:
    machine.change({"0.procs": f"4242:1000 {row}"})
    assert device.processes() == Reading(None, Reason.OUT_OF_RANGE)


def test_go_nvml_75_no_call_can_be_believed(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.procs": f"4242:1000 4243:{81 * GIB}"})
    assert device.processes() == Reading(None, Reason.OUT_OF_RANGE)


def test_nvtop_110_rows_of_processes_that_ended(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.procs": "4242:1000 99999:500"})
    assert device.processes(pid_exists=KNOWN.__contains__) == Reading(Processes((process(4242, 1000),), 1))


def test_nvtop_110_garbage_samples(machine: Machine, device: NvmlDevice) -> None:
    noise = " ".join(f"{90000 + n}:{2000 + n}:{n}" for n in range(98))
    machine.change({"0.putil": f"4242:1500:55 4243:1501:808334905 {noise}"})
    found = device.process_samples(1000, pid_exists=KNOWN.__contains__)
    assert found == Reading(ProcessSamples((sample(4242, 1500, 55),), 99))


def test_samples_since_a_timestamp(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.putil": "4242:1000:55 4243:1001:7:1:2:3"})
    assert device.process_samples().known.rows == (sample(4242, 1000, 55), ProcessSample(4243, 1001, 7, 1, 2, 3))
    assert device.process_samples(1000).known.rows == (ProcessSample(4243, 1001, 7, 1, 2, 3),)


def test_a_sample_from_before_the_timestamp_is_not_counted_twice(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.putil": "4242:1000:55 4243:1001:7", "0.putil_stale": 1})
    assert device.process_samples(1000) == Reading(ProcessSamples((sample(4243, 1001, 7),), 1))


@pytest.mark.parametrize("first", ["!0", "!6"])
def test_gpu_metrics_agent_37_success_or_not_found_means_no_sample(
    machine: Machine, device: NvmlDevice, first: str
) -> None:
    """The binding raises `NVMLError(0)`, an error that says success, when the first call succeeds."""
    machine.change({"0.putil": "4242:1000:55", "0.putil_first": first})
    assert device.process_samples() == Reading(ProcessSamples(()))


def test_no_new_sample(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.putil": "4242:1000:55"})
    assert device.process_samples(1000) == Reading(ProcessSamples(()))


@pytest.mark.parametrize(("races", "expected"), [(3, None), (9, Reason.UNKNOWN)])
def test_processes_that_appear_between_the_two_calls(
    machine: Machine, device: NvmlDevice, races: int, expected: Reason | None
) -> None:
    machine.change({"0.putil": "4242:1000:55", "0.putil_race": races})
    assert device.process_samples().reason is expected


def test_a_mig_device_has_no_samples_and_is_asked_once(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.putil": "!3"})
    for since_us in range(3):
        assert device.process_samples(since_us) == Reading(None, Reason.NOT_SUPPORTED, 3)
    assert machine.asked("0.putil") == 1


def test_a_lost_device_has_no_processes_to_tell(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.ALL": "!15"})
    with pytest.raises(DeviceLostError):
        device.processes()
    with pytest.raises(DeviceLostError):
        device.process_samples()


def test_a_host_process_is_looked_up_by_its_number() -> None:
    assert host_has_pid(os.getpid())
    assert not host_has_pid(2**31 - 1)
