"""Readings of one device, or of one MIG instance, through NVML.

Each method asks the driver when it is called. A reading that the device or driver does not offer is
absent with its reason; a lost device raises DeviceLostError from whichever call notices first.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from collectors.nvml import values as values
from collectors.nvml.fields import field_values
from collectors.nvml.processes import PidCheck, running_processes, utilization_samples
from collectors.nvml.values import (
    COUNT_RANGE,
    NONE_32,
    NONE_64,
    PERCENT_RANGE,
    Reading,
    Reason,
    checked,
    unsigned_celsius,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collectors.nvml.calls import Calls
    from collectors.nvml.fields import Field

CLOCKS: Final = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}
MEMORY_V2: Final = 0x02000028
CLOCK_MHZ_RANGE: Final = (0, 20_000)
PLACEMENT_RANGE: Final = (0, 63)
MARGIN_CELSIUS_RANGE: Final = (-150, 150)
ARCHITECTURES: Final = {
    2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing", 7: "ampere", 8: "ada", 9: "hopper",
    10: "blackwell", 13: "rubin",
}  # fmt: skip


class NvmlDevice:
    """One device or MIG instance, known by its UUID; the handle is NVML's and means nothing elsewhere."""

    def __init__(self, calls: Calls, handle: Any, uuid: str, index: int) -> None:
        """Made by the port, which found the handle."""
        self._calls = calls
        self.handle = handle
        self.uuid = uuid
        self.index = index

    @property
    def address(self) -> int | None:
        """What the handle points at: the same for two handles of one device."""
        return handle_address(self.handle)

    def identity(self) -> values.Identity:
        """Name, architecture, serial number, PCI address and minor number."""
        pci = self._read("nvmlDeviceGetPciInfo")
        return values.Identity(
            self.uuid,
            self.index,
            self.name(),
            self._architecture(),
            self._read("nvmlDeviceGetSerial"),
            pci.absent() if pci.reason else Reading(pci.known.busId),
            self._number("nvmlDeviceGetMinorNumber"),
        )

    def name(self) -> Reading[str]:
        """The model; of a MIG instance, the board's followed by the instance's profile."""
        return self._read("nvmlDeviceGetName")

    def _architecture(self) -> Reading[str]:
        """A name, or the number of an architecture that is newer than this list."""
        found = self._number("nvmlDeviceGetArchitecture")
        return found.absent() if found.value is None else Reading(ARCHITECTURES.get(found.value, str(found.value)))

    def utilization(self) -> values.Utilization:
        """How busy the device was; a value above 100 is a corrupted read and refused, not clamped."""
        both = self._read("nvmlDeviceGetUtilizationRates")
        if both.reason:
            return values.Utilization(both.absent(), both.absent())
        return values.Utilization(
            checked(Reading(both.known.gpu), PERCENT_RANGE), checked(Reading(both.known.memory), PERCENT_RANGE)
        )

    def memory(self) -> Reading[values.Memory]:
        """Memory of the device; with what the driver reserves told apart where it can."""
        found = self._calls.read(self.uuid, "nvmlDeviceGetMemoryInfo", self.handle, MEMORY_V2, key=(2,))
        split = not found.reason
        if found.reason in {Reason.FUNCTION_MISSING, Reason.NOT_SUPPORTED}:
            found = self._read("nvmlDeviceGetMemoryInfo")
        if found.reason:
            return found.absent()
        raw = found.known
        total, used = raw.total, raw.used  # each look into the struct costs
        if NONE_64 in (total, used):
            return Reading(None, Reason.SENTINEL)
        if not 0 < total <= COUNT_RANGE[1] or used > total:
            return Reading(None, Reason.OUT_OF_RANGE)
        reserved: Reading[int] = Reading(None, Reason.FUNCTION_MISSING)
        if split:
            reserved = checked(Reading(raw.reserved), (0, total), none=NONE_64)
        return Reading(values.Memory(total, used, reserved))

    def power_mw(self) -> Reading[int]:
        """Power drawn, averaged as the device does (over a second on most)."""
        return self._number("nvmlDeviceGetPowerUsage", limits=values.POWER_MW_RANGE)

    def power_limit_mw(self) -> Reading[int]:
        """The limit that is enforced now, whoever set it."""
        return self._number("nvmlDeviceGetEnforcedPowerLimit", limits=values.POWER_MW_RANGE)

    def energy_mj(self) -> Reading[int]:
        """Energy since the driver was loaded. It starts again at a reload or reset: the caller counts epochs."""
        return self._number("nvmlDeviceGetTotalEnergyConsumption", none=NONE_64)

    def clock_mhz(self, clock: str) -> Reading[int]:
        """One of the clocks in CLOCKS."""
        return self._number("nvmlDeviceGetClockInfo", CLOCKS[clock], limits=CLOCK_MHZ_RANGE)

    def performance_state(self) -> Reading[int]:
        """0 is the fastest; the driver says 32 when it does not know."""
        return self._number("nvmlDeviceGetPerformanceState", limits=(0, 15), none=32)

    def temperature_celsius(self) -> Reading[int]:
        """Temperature of the chip, from the signed call or else the old unsigned one."""
        found = self._read("nvmlDeviceGetTemperatureV", 0)
        if found.reason is None:
            return checked(found, values.CELSIUS_RANGE)
        if found.reason not in {Reason.FUNCTION_MISSING, Reason.NOT_SUPPORTED}:
            return found
        return unsigned_celsius(self._read("nvmlDeviceGetTemperature", 0))

    def temperature_margin_celsius(self) -> Reading[int]:
        """Degrees left before the device slows itself down."""
        return checked(self._read("nvmlDeviceGetMarginTemperature"), MARGIN_CELSIUS_RANGE)

    def throttle_bits(self) -> Reading[int]:
        """Why the clocks are held down now, as NVML's bit mask; an old driver knows the call by its old name."""
        found = self._number("nvmlDeviceGetCurrentClocksEventReasons", none=NONE_64)
        if found.reason is Reason.FUNCTION_MISSING:
            found = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", none=NONE_64)
        return found

    def ecc_errors(self, *, corrected: bool, aggregate: bool) -> Reading[int]:
        """Memory errors since the driver was loaded, or over the device's life. Never to be added."""
        return self._number("nvmlDeviceGetTotalEccErrors", 0 if corrected else 1, int(aggregate), none=NONE_64)

    def remapped_rows(self) -> Reading[values.RemappedRows]:
        """Rows replaced after errors (Ampere and newer)."""
        found = self._read("nvmlDeviceGetRemappedRows")
        if found.reason:
            return found.absent()
        corrected, uncorrected, pending, failed = found.known
        if NONE_32 in found.known:
            return Reading(None, Reason.SENTINEL)
        return Reading(values.RemappedRows(corrected, uncorrected, bool(pending), bool(failed)))

    def pcie_replay_events(self) -> Reading[int]:
        """PCIe packets sent again since the driver was loaded."""
        return self._number("nvmlDeviceGetPcieReplayCounter")

    def pcie_bytes_per_second(self, direction: str) -> Reading[int]:
        """Traffic over the last 20 ms, `tx` or `rx` as the device sees it."""
        found = self._number("nvmlDeviceGetPcieThroughput", {"tx": 0, "rx": 1}[direction])
        return found if found.value is None else Reading(found.known * 1024)

    def fields(self, wanted: Iterable[Field]) -> dict[Field, Reading[int]]:
        """Several values in one call to the driver; each has its own success or reason."""
        return field_values(self._calls, self.uuid, self.handle, wanted)

    def processes(self, kind: str = "compute", pid_exists: PidCheck | None = None) -> Reading[values.Processes]:
        """The processes that hold the device: `compute`, `graphics` or `mps`.

        `pid_exists` tells whether the host has a process; without it the numbers are not checked.
        """
        total = self.memory().value
        limit = total.total_bytes if total else None
        return running_processes(self._calls, self.uuid, self.handle, kind, limit, pid_exists)

    def process_samples(self, since_us: int = 0, pid_exists: PidCheck | None = None) -> Reading[values.ProcessSamples]:
        """What each process used since a timestamp of an earlier sample; no sample at all is no use, not unknown."""
        return utilization_samples(self._calls, self.uuid, self.handle, since_us, pid_exists)

    def mig_mode(self) -> Reading[values.MigMode]:
        """Whether the device is cut into instances."""
        found = self._read("nvmlDeviceGetMigMode")
        return found.absent() if found.reason else Reading(values.MigMode(*(mode == 1 for mode in found.known)))

    def mig_instances(self) -> Reading[tuple[MigInstance, ...]]:
        """The instances there are; absent if one of them cannot be told, because the rest is not the whole.

        A slot may be empty between two that are not, so all slots are looked at.
        """
        slots = self._number("nvmlDeviceGetMaxMigDeviceCount", limits=(0, 64))
        if slots.value is None:
            return slots.absent()
        found = [self._mig_instance(slot) for slot in range(slots.value)]
        for instance in found:
            if instance.reason not in {None, Reason.NOT_FOUND}:
                return instance.absent()
        return Reading(tuple(instance.value for instance in found if instance.value))

    def placement_start(self, gpu_instance_id: int) -> Reading[int]:
        """The memory slice of this board at which a GPU instance begins; told to root only."""
        handle = self._read("nvmlDeviceGetGpuInstanceById", gpu_instance_id)
        if handle.reason:
            return handle.absent()
        found = self._calls.read(self.uuid, "nvmlGpuInstanceGetInfo", handle.known, key=(gpu_instance_id,))
        return found.absent() if found.reason else checked(Reading(found.known.placement.start), PLACEMENT_RANGE)

    def _mig_instance(self, slot: int) -> Reading[MigInstance]:
        """The instance in a slot; NOT_FOUND for an empty slot, or when the instance went while it was read."""
        handle = self._calls.read(self.uuid, "nvmlDeviceGetMigDeviceHandleByIndex", self.handle, slot)
        if handle.reason:
            return handle.absent()
        uuid = self._calls.read(self.uuid, "nvmlDeviceGetUUID", handle.known, key=(slot,))
        if uuid.reason:
            return uuid.absent()
        device = NvmlDevice(self._calls, handle.known, uuid.known, slot)
        gpu_id = device._number("nvmlDeviceGetGpuInstanceId")
        compute_id = device._number("nvmlDeviceGetComputeInstanceId")
        if gpu_id.value is None or compute_id.value is None:
            return gpu_id.absent() if gpu_id.reason else compute_id.absent()
        return Reading(MigInstance(device, self, gpu_id.value, compute_id.value))

    def mig_attributes(self) -> Reading[values.MigAttributes]:
        """The size of this MIG instance; not supported by a whole device."""
        found = self._read("nvmlDeviceGetAttributes_v2")
        if found.reason:
            return found.absent()
        raw = found.known
        return Reading(
            values.MigAttributes(
                raw.multiprocessorCount,
                raw.gpuInstanceSliceCount,
                raw.computeInstanceSliceCount,
                raw.memorySizeMB * values.MEBIBYTE,
            )
        )

    def _read(self, name: str, *args: Any, key: tuple[int, ...] | None = None) -> Reading[Any]:
        return self._calls.read(self.uuid, name, self.handle, *args, key=args if key is None else key)

    def _number(
        self, name: str, *args: int, limits: tuple[int, int] = COUNT_RANGE, none: int = NONE_32
    ) -> Reading[int]:
        return checked(self._read(name, *args), limits, none=none)


def handle_address(handle: Any) -> int | None:
    """What one of NVML's handles points at; handles themselves cannot be compared."""
    return ctypes.cast(handle, ctypes.c_void_p).value


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A part of a device that is scheduled like a device of its own."""

    device: NvmlDevice
    parent: NvmlDevice
    gpu_instance_id: int
    compute_instance_id: int
