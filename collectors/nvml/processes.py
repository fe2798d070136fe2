"""Which processes use a device, as far as NVML can be believed.

The driver's answers here are its weakest. R535 changed the size of the records behind the binding's
back, so that the second row onwards is made of pieces (pynvml#50, go-nvml#75, nvitop#79); processes
that ended leave rows of noise (nvtop#110). So rows are compared with what must be true of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collectors.nvml.calls import INSUFFICIENT_SIZE, NOT_FOUND
from collectors.nvml.values import (
    NONE_64,
    Process,
    Processes,
    ProcessSample,
    ProcessSamples,
    Reading,
    Reason,
    instance_id,
)

if TYPE_CHECKING:
    from collectors.nvml.calls import Calls

PidCheck = Callable[[int], bool]
TRIES: Final = 4
INSTANCE_ID_LIMIT: Final = 64
HIGHEST_PID: Final = 2**22
"""Linux has no higher one on any machine."""
SYMBOLS: Final = {
    "compute": "nvmlDeviceGetComputeRunningProcesses",
    "graphics": "nvmlDeviceGetGraphicsRunningProcesses",
    "mps": "nvmlDeviceGetMPSComputeRunningProcesses",
}


def host_has_pid(pid: int) -> bool:
    """Whether a process of this number exists. Only meaningful where the host's processes can be seen."""
    return Path("/proc", str(pid)).exists()


def running_processes(
    calls: Calls, uuid: str, handle: Any, kind: str, limit_bytes: int | None, pid_exists: PidCheck | None
) -> Reading[Processes]:
    """The processes on a device from the newest call whose rows hold together.

    Rows that both calls agree on but the host does not know are of processes that ended: they are
    dropped and counted. If no call can be believed, the reading is absent: half a list is no list.
    """
    newest = _rows(calls, uuid, handle, f"{SYMBOLS[kind]}_v3")
    if newest.value is not None and all(_credible(row, limit_bytes, pid_exists) for row in newest.value):
        return Reading(Processes(tuple(newest.value)))
    if newest.value is None and newest.reason is not Reason.FUNCTION_MISSING:
        return newest.absent()
    older = _rows(calls, uuid, handle, f"{SYMBOLS[kind]}_v2")
    if older.reason is Reason.FUNCTION_MISSING and newest.value is not None:
        older = newest  # a driver that dropped the older call is newer than R535
    if older.value is None:
        return older.absent()
    if not all(_possible(row, limit_bytes) for row in older.value):
        return Reading(None, Reason.OUT_OF_RANGE)
    kept = tuple(row for row in older.value if _credible(row, limit_bytes, pid_exists))
    return Reading(Processes(kept, len(older.value) - len(kept)))


def _rows(calls: Calls, uuid: str, handle: Any, name: str) -> Reading[list[Process]]:
    found = _retried(calls, uuid, name, handle)
    if found.reason:
        return Reading([]) if found.code == NOT_FOUND else found.absent()
    return Reading([_process(row) for row in found.known])


def _process(row: Any) -> Process:
    memory = None if row.usedGpuMemory in {None, NONE_64} else int(row.usedGpuMemory)
    return Process(row.pid, memory, instance_id(row.gpuInstanceId), instance_id(row.computeInstanceId))


def _possible(row: Process, limit_bytes: int | None) -> bool:
    """Whether a row can be true at all; a piece of a record has a length of memory where an instance id belongs."""
    ids = (row.gpu_instance_id, row.compute_instance_id)
    return (
        0 < row.pid <= HIGHEST_PID
        and (row.memory_bytes is None or limit_bytes is None or row.memory_bytes <= limit_bytes)
        and (ids == (None, None) or all(number is not None and number < INSTANCE_ID_LIMIT for number in ids))
    )


def _credible(row: Process, limit_bytes: int | None, pid_exists: PidCheck | None) -> bool:
    return _possible(row, limit_bytes) and (pid_exists is None or pid_exists(row.pid))


def utilization_samples(
    calls: Calls, uuid: str, handle: Any, since_us: int, pid_exists: PidCheck | None
) -> Reading[ProcessSamples]:
    """What each process used since a timestamp.

    The binding asks for the size first and raises on any answer but `too small`, success included:
    0 and 6 both mean that no process left a sample.
    """
    found = _retried(calls, uuid, "nvmlDeviceGetProcessUtilization", handle, since_us)
    if found.code in {0, NOT_FOUND}:
        return Reading(ProcessSamples(()))
    if found.reason:
        return found.absent()
    samples = [
        ProcessSample(row.pid, row.timeStamp, row.smUtil, row.memUtil, row.encUtil, row.decUtil) for row in found.known
    ]
    kept = tuple(sample for sample in samples if _sane(sample, since_us, pid_exists))
    return Reading(ProcessSamples(kept, len(samples) - len(kept)))


def _sane(sample: ProcessSample, since_us: int, pid_exists: PidCheck | None) -> bool:
    shares = (sample.sm_percent, sample.memory_percent, sample.encoder_percent, sample.decoder_percent)
    return (
        0 < sample.pid <= HIGHEST_PID
        and sample.timestamp_us > since_us
        and max(shares) <= 100
        and (pid_exists is None or pid_exists(sample.pid))
    )


def _retried(calls: Calls, uuid: str, name: str, *args: Any) -> Reading[Any]:
    """A call whose buffer may be too small because processes appear meanwhile."""
    for _ in range(TRIES):
        found = calls.read(uuid, name, *args)
        if found.code != INSUFFICIENT_SIZE:
            break
    return found
