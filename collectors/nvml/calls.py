"""The only way from the NVML port into the binding: a fixed list of calls, their errors sorted once.

The binding's exceptions have traps: they cannot be hashed, comparing one with another kind of
exception raises, and unknown codes have no class of their own. So only the number in `.value` is
looked at. What a device does not support, and what a driver does not have, is asked for once.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from collectors.nvml.values import (
    DeviceLostError,
    DeviceNeedsResetError,
    DriverAbsentError,
    DriverMismatchError,
    NvmlError,
    Reading,
    Reason,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

UNINITIALIZED: Final = 1
NOT_FOUND: Final = 6
INSUFFICIENT_SIZE: Final = 7
DRIVER_NOT_LOADED: Final = 9
TIMEOUT: Final = 10
LIBRARY_NOT_FOUND: Final = 12
FUNCTION_NOT_FOUND: Final = 13
GPU_IS_LOST: Final = 15
RESET_REQUIRED: Final = 16
LIBRARY_MISMATCH: Final = 18

REASONS: Final = {
    2: Reason.NOT_FOUND,  # an index or handle that is gone: enumerate again
    3: Reason.NOT_SUPPORTED,
    4: Reason.NO_PERMISSION,
    6: Reason.NOT_FOUND,
    10: Reason.TIMEOUT,
    13: Reason.FUNCTION_MISSING,
    21: Reason.NOT_FOUND,  # no data yet
    22: Reason.NOT_SUPPORTED,  # no ECC under vGPU
    25: Reason.FUNCTION_MISSING,  # the driver does not know this version of the struct
    28: Reason.NOT_FOUND,
}
"""Every other code is UNKNOWN; the reading keeps the number."""
LASTING: Final = (Reason.NOT_SUPPORTED, Reason.FUNCTION_MISSING)

READ_ONLY_CALLS: Final = frozenset({
    "nvmlDeviceGetArchitecture", "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetComputeInstanceId",
    "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetCount", "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetFieldValues", "nvmlDeviceGetGpuInstanceById", "nvmlDeviceGetGpuInstanceId",
    "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetMPSComputeRunningProcesses_v2",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMarginTemperature",
    "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMigDeviceHandleByIndex",
    "nvmlDeviceGetMigMode", "nvmlDeviceGetMinorNumber", "nvmlDeviceGetName", "nvmlDeviceGetPciInfo",
    "nvmlDeviceGetPcieReplayCounter", "nvmlDeviceGetPcieThroughput", "nvmlDeviceGetPerformanceState",
    "nvmlDeviceGetPowerUsage", "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetRemappedRows",
    "nvmlDeviceGetSerial", "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceGetTemperature",
    "nvmlDeviceGetTemperatureV", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetUUID", "nvmlDeviceGetUtilizationRates", "nvmlDeviceRegisterEvents",
    "nvmlEventSetCreate", "nvmlEventSetFree", "nvmlEventSetWait_v2", "nvmlGpmMetricsGet",
    "nvmlGpmMigSampleGet", "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree",
    "nvmlGpmSampleGet", "nvmlGpuInstanceGetInfo", "nvmlInit", "nvmlShutdown", "nvmlSystemGetDriverVersion",
})  # fmt: skip
"""All that is ever called. None of them sets, clears or resets anything; what only root is told stays unknown."""


class Calls:
    """Calls of the binding by name, with the answers that stay the same remembered.

    Safe to use from several threads, as NVML itself is; a call that hangs in the driver holds no lock here.
    """

    def __init__(self, binding: ModuleType) -> None:
        """Wrap the imported binding; nothing is called yet."""
        self._binding = binding
        self._lasting: dict[tuple[str | None, str, tuple[int, ...]], Reading[Any]] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self.started = False

    def start(self) -> None:
        """Load the driver's library and attach to it; NvmlError or one of its kinds if that fails."""
        reading = self._once(None, "nvmlInit", ())
        if reading.reason:
            raise NvmlError(f"NVML cannot start (code {reading.code})")
        self.started = True

    def stop(self) -> None:
        """Detach; harmless when the driver has gone meanwhile."""
        if self.started:
            self.started = False
            self.release("nvmlShutdown")

    def release(self, name: str, *args: Any) -> None:
        """Give something back to the library. A driver in trouble must not hide what went wrong before."""
        with contextlib.suppress(NvmlError):
            self._once(None, name, args)

    def struct(self, name: str) -> Any:
        """A new, empty struct of the binding, or None where the binding is too old to have it."""
        made: Callable[[], Any] | None = getattr(self._binding, name, None)
        return made() if made else None

    def forget(self, uuid: str | None = None) -> None:
        """Ask again for what was not supported, by one device or by all: its MIG mode or the driver changed."""
        kept = [] if uuid is None else [key for key in self._lasting if key[0] != uuid]
        self._lasting = {key: self._lasting[key] for key in kept}

    def read(self, uuid: str | None, name: str, *args: Any, key: tuple[int, ...] = ()) -> Reading[Any]:
        """The result of a call, or why there is none.

        `key` tells apart variants of one call that a device may support or not. Raises what concerns
        the device or driver as a whole, as `judged` does.
        """
        if known := self.remembered(uuid, name, key):
            return known
        reading = self._once(uuid, name, args)
        if reading.reason is None:
            return reading
        if reading.code == UNINITIALIZED and self.started:
            self.start()
            reading = self._once(uuid, name, args)
        elif reading.code == TIMEOUT and name != "nvmlEventSetWait_v2":
            reading = self._once(uuid, name, args)
        self.remember(uuid, name, key, reading)
        return reading

    def remembered(self, uuid: str | None, name: str, key: tuple[int, ...]) -> Reading[Any] | None:
        """The lasting answer to a call, if there was one."""
        return self._lasting.get((uuid, name, key)) or self._lasting.get((None, name, key))

    def remember(self, uuid: str | None, name: str, key: tuple[int, ...], reading: Reading[Any]) -> None:
        """Keep an answer that stays the same: for this device, or for all if the driver lacks the call."""
        if reading.reason in LASTING:
            missing = reading.reason is Reason.FUNCTION_MISSING
            self._lasting[None if missing else uuid, name, key] = reading

    def judged(self, uuid: str | None, code: int) -> Reading[Any]:
        """The absent reading for an error code.

        Raises what no other reading would survive: DeviceLostError, DeviceNeedsResetError,
        DriverAbsentError, DriverMismatchError.
        """
        if code == GPU_IS_LOST:
            raise DeviceLostError(f"{uuid or 'a device'} is lost: it fell off the bus", uuid)
        if code == RESET_REQUIRED:
            raise DeviceNeedsResetError(f"{uuid or 'a device'} has to be reset before it can be read", uuid)
        if code in {DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND}:
            raise DriverAbsentError(f"no NVIDIA driver answers here (NVML code {code})")
        if code == LIBRARY_MISMATCH:
            raise DriverMismatchError("the NVIDIA driver was replaced: a new process has to be started")
        return Reading(None, REASONS.get(code, Reason.UNKNOWN), code)

    def _once(self, uuid: str | None, name: str, args: tuple[Any, ...]) -> Reading[Any]:
        try:
            return Reading(self._function(name)(*args))
        except self._binding.NVMLError as error:
            return self.judged(uuid, error.value)
        except (self._binding.NVMLLibraryMismatchError, _MissingInBindingError):
            return Reading(None, Reason.FUNCTION_MISSING, FUNCTION_NOT_FOUND)
        except UnicodeDecodeError:
            return Reading(None, Reason.OUT_OF_RANGE)  # a name that is not text

    def _function(self, name: str) -> Callable[..., Any]:
        known = self._functions.get(name)
        if known is not None:
            return known
        if name not in READ_ONLY_CALLS:
            raise ValueError(f"{name} is not one of the calls that only read")
        function: Callable[..., Any] | None = getattr(self._binding, name, None)
        if function is None:
            raise _MissingInBindingError
        self._functions[name] = function
        return function


class _MissingInBindingError(Exception):
    """The installed binding is older than this call."""
