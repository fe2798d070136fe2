"""The typed port to NVML, the library of the NVIDIA driver; the only module that knows its binding.

    with NvmlPort.open() as port:
        for slot in port.slots():
            if slot.device:
                slot.device.power_mw()

Reading is all it does: the calls it may make are listed in `collectors.nvml.calls`. A call into a driver that
hangs does not return; the interpreter goes on meanwhile, so whoever calls keeps the time from another
thread and replaces the process. The module can be imported without the binding, which is looked for
when the port is opened.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collectors.nvml.calls import Calls
from collectors.nvml.device import MigInstance, NvmlDevice
from collectors.nvml.events import EventWatch
from collectors.nvml.gpm import GpmMeter
from collectors.nvml.values import DeviceError, NvmlError, Reading, Reason, checked
from fleet.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType, TracebackType

__all__ = ["EventWatch", "GpmMeter", "MigInstance", "NvmlDevice", "NvmlPort", "Slot"]

MOST_DEVICES = 1024


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the driver's list: the device in it, or why it cannot be read."""

    index: int
    device: NvmlDevice | None
    error: DeviceError | None = None
    reason: Reason | None = None


class NvmlPort:
    """An open connection to the driver."""

    def __init__(self, calls: Calls) -> None:
        """Use `open`."""
        self._calls = calls

    @classmethod
    def open(cls) -> NvmlPort:
        """Attach to the driver: MissingDependencyError, DriverAbsentError, DriverMismatchError or NvmlError."""
        calls = Calls(_binding())
        calls.start()
        return cls(calls)

    def __enter__(self) -> NvmlPort:
        """The port itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Detach from the driver."""
        self.close()

    def close(self) -> None:
        """Detach from the driver; the library stays mapped, so a new driver needs a new process."""
        self._calls.stop()

    def driver_version(self) -> Reading[str]:
        """Such as `550.127.08`."""
        return self._calls.read(None, "nvmlSystemGetDriverVersion")

    def count(self) -> Reading[int]:
        """How many devices the driver lists now."""
        return checked(self._calls.read(None, "nvmlDeviceGetCount"), (0, MOST_DEVICES))

    def slots(self) -> tuple[Slot, ...]:
        """Every device that the driver lists, read anew. A lost one may show with its error, or be listed no more.

        The order is the driver's of today: a device is known by its UUID, never by its place.
        """
        count = self.count()
        if count.value is None:
            raise NvmlError(f"NVML does not say how many devices there are: {count.reason} (code {count.code})")
        return tuple(self._slot(index) for index in range(count.value))

    def devices(self) -> tuple[NvmlDevice, ...]:
        """The devices that can be read."""
        return tuple(slot.device for slot in self.slots() if slot.device)

    def gpm(self, target: NvmlDevice | MigInstance, clock: Callable[[], float] = time.monotonic) -> GpmMeter:
        """A meter of a device's or MIG instance's activity, to be used as a context manager."""
        return GpmMeter(self._calls, target, clock)

    def events(self, devices: Iterable[NvmlDevice]) -> EventWatch:
        """A watch for what devices report by themselves, to be used as a context manager."""
        return EventWatch(self._calls, devices)

    def forget(self, uuid: str | None = None) -> None:
        """Ask again for what a device (or any) did not support: its MIG mode changed."""
        self._calls.forget(uuid)

    def _slot(self, index: int) -> Slot:
        uuid: str | None = None
        try:
            handle = self._calls.read(None, "nvmlDeviceGetHandleByIndex", index, key=(index,))
            if handle.reason:
                return Slot(index, None, reason=handle.reason)
            found = self._calls.read(None, "nvmlDeviceGetUUID", handle.known, key=(index,))
            if found.value is None:
                return Slot(index, None, reason=found.reason)
            uuid = found.known
        except DeviceError as error:
            return Slot(index, None, error=error)
        return Slot(index, NvmlDevice(self._calls, handle.known, uuid, index))


def _binding() -> ModuleType:
    try:
        import pynvml
    except ModuleNotFoundError:
        raise MissingDependencyError("the NVML collector needs nvidia-ml-py: install gputally[agent]") from None
    module: ModuleType = pynvml
    return module
