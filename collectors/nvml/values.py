"""What the NVML port returns: readings that may be absent for a stated reason, records, errors.

Names end in their unit; nothing here knows the binding. Absent is never 0: a `Reading` without a
value says why. What concerns a whole device or the driver (lost, in need of a reset, replaced
underneath us) is no absent reading but an exception, because no other reading will be right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from fleet.errors import GputallyError

T = TypeVar("T")
Number = TypeVar("Number", int, float)

NONE_32 = 2**32 - 1
NONE_64 = 2**64 - 1
MEBIBYTE = 2**20
CELSIUS_RANGE = (-40, 150)
PERCENT_RANGE = (0, 100)
POWER_MW_RANGE = (0, 20_000_000)
COUNT_RANGE = (0, 2**63 - 1)
_LEGACY_MIG_ID = re.compile(r"MIG-(GPU-[0-9a-fA-F-]+)/(\d+)/(\d+)")


class Reason(StrEnum):
    """Why a reading has no value."""

    NOT_SUPPORTED = "not_supported"
    NO_PERMISSION = "no_permission"
    FUNCTION_MISSING = "function_missing"
    NOT_FOUND = "not_found"
    SENTINEL = "sentinel"
    OUT_OF_RANGE = "out_of_range"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A value, or None with a reason; `code` is NVML's own where NVML gave the reason."""

    value: T | None
    reason: Reason | None = None
    code: int | None = None

    @property
    def known(self) -> T:
        """The value of a reading that has one."""
        assert self.value is not None
        return self.value

    def absent(self) -> Reading[T2]:
        """The same absence as a reading of another type."""
        return Reading(None, self.reason, self.code)


T2 = TypeVar("T2")


class NvmlError(GputallyError):
    """NVML refuses as a whole, or one device does."""


class DriverAbsentError(NvmlError):
    """No NVIDIA driver is loaded, or its library is not installed (codes 9 and 12)."""


class DriverMismatchError(NvmlError):
    """The driver was replaced underneath this process (code 18): only a new process helps."""


class DeviceError(NvmlError):
    """One device cannot be read; `uuid` is None where NVML does not say which."""

    def __init__(self, message: str, uuid: str | None) -> None:
        """Keep which device it is beside the message."""
        super().__init__(message)
        self.uuid = uuid


class DeviceLostError(DeviceError):
    """The device fell off the bus (code 15)."""


class DeviceNeedsResetError(DeviceError):
    """The device answers nothing before it is reset (code 16)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a device is; it does not change while the driver is loaded."""

    uuid: str
    index: int
    name: Reading[str]
    architecture: Reading[str]
    serial: Reading[str]
    pci_bus_id: Reading[str]
    minor_number: Reading[int]


@dataclass(frozen=True, slots=True)
class Utilization:
    """Percent of the driver's last period in which any kernel ran, in which memory was accessed."""

    gpu_percent: Reading[int]
    memory_percent: Reading[int]


@dataclass(frozen=True, slots=True)
class Memory:
    """Device memory. An old driver counts the reserved part as used and does not tell it."""

    total_bytes: int
    used_bytes: int
    reserved_bytes: Reading[int]


@dataclass(frozen=True, slots=True)
class RemappedRows:
    """Rows of memory replaced after errors, and whether a replacement waits or failed."""

    corrected_rows: int
    uncorrected_rows: int
    pending: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class Process:
    """One process on a device, by its number on the host; instance ids are None outside MIG."""

    pid: int
    memory_bytes: int | None
    gpu_instance_id: int | None
    compute_instance_id: int | None


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes that could be believed, and how many rows could not."""

    rows: tuple[Process, ...]
    rejected_rows: int = 0


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """What one process used in the driver's last sampling window."""

    pid: int
    timestamp_us: int
    sm_percent: int
    memory_percent: int
    encoder_percent: int
    decoder_percent: int


@dataclass(frozen=True, slots=True)
class ProcessSamples:
    """The samples that could be believed, and how many could not."""

    rows: tuple[ProcessSample, ...]
    rejected_rows: int = 0


@dataclass(frozen=True, slots=True)
class MigMode:
    """Whether the device is cut into instances, now and after the next reset."""

    enabled: bool
    pending: bool


@dataclass(frozen=True, slots=True)
class MigAttributes:
    """The size of a MIG instance."""

    multiprocessors: int
    gpu_slices: int
    compute_slices: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something a device reported. `data` is the Xid when `kind` is "xid"; an unknown kind is its number."""

    uuid: str | None
    kind: str
    data: int
    gpu_instance_id: int | None
    compute_instance_id: int | None


def checked(reading: Reading[Number], limits: tuple[int, int], *, none: int = NONE_32) -> Reading[Number]:
    """The reading itself if its value can be believed, else an absent one; nothing is clamped."""
    value = reading.value
    if value is None:
        return reading
    if value == none:
        return Reading(None, Reason.SENTINEL)
    if not limits[0] <= value <= limits[1]:  # nor is what is not a number
        return Reading(None, Reason.OUT_OF_RANGE)
    return reading


def unsigned_celsius(found: Reading[int]) -> Reading[int]:
    """A temperature from an unsigned call: -5 comes as 4294967291, and 2^32-1 is no temperature."""
    value = found.value
    if value is not None and 2**31 <= value < NONE_32:
        value = int(value) - 2**32
    return found if value is None else checked(Reading(value), CELSIUS_RANGE)


def instance_id(value: int) -> int | None:
    """The id of a MIG instance, or None for `not in an instance`."""
    return None if value == NONE_32 else value


def legacy_mig_id(text: str) -> tuple[str, int, int] | None:
    """The device, GPU instance and compute instance in `MIG-GPU-<uuid>/<gi>/<ci>`, as drivers up to R450 wrote it."""
    found = _LEGACY_MIG_ID.fullmatch(text)
    return (found[1], int(found[2]), int(found[3])) if found else None
