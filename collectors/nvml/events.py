"""Events that devices report by themselves: Xid errors, memory faults, changes of MIG instances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collectors.nvml.device import handle_address
from collectors.nvml.values import Event, NvmlError, Reading, Reason, instance_id

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from collectors.nvml.calls import Calls
    from collectors.nvml.device import NvmlDevice

KINDS: Final = {
    0x1: "ecc_corrected",
    0x2: "ecc_uncorrected",
    0x8: "xid",
    0x100: "mig_changed",
    0x400: "dram_retirement",
    0x800: "dram_retirement_failed",
    0x2000: "fatal_poison",
    0x4000: "unavailable",
    0x8000: "recovery_action",
}
"""What is listened for; an event of another kind carries its number as text."""
WANTED: Final = sum(KINDS)


class EventWatch:
    """A set of events, registered for some devices; a context manager, because the set must be freed."""

    def __init__(self, calls: Calls, devices: Iterable[NvmlDevice]) -> None:
        """Made by the port; nothing is registered before the watch is entered."""
        self._calls = calls
        self._devices = tuple(devices)
        self._set: Any = None
        self._uuids: dict[int | None, str] = {}
        self.unwatched: dict[str, Reason | None] = {}
        """Devices that report nothing, with the reason; None for one that was lost or needs a reset."""

    def __enter__(self) -> EventWatch:
        """Create the set and register each device for the events that it supports."""
        made = self._calls.read(None, "nvmlEventSetCreate")
        if made.reason:
            raise NvmlError(f"NVML gives no event set: {made.reason} (code {made.code})")
        self._set = made.known
        try:
            for device in self._devices:
                self.add(device)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Free the set, whatever happened."""
        self.close()

    def close(self) -> None:
        """Free the set; harmless when that was done."""
        if self._set is not None:
            held, self._set = self._set, None
            self._calls.release("nvmlEventSetFree", held)

    def wait(self, timeout_ms: int) -> Reading[Event]:
        """The next event; absent with TIMEOUT when there was none, which is the usual answer.

        DeviceLostError when the driver says that a device is gone; it does not say which.
        """
        found = self._calls.read(None, "nvmlEventSetWait_v2", self._set, timeout_ms)
        if found.reason:
            return found.absent()
        raw = found.known
        kind = KINDS.get(raw.eventType, str(raw.eventType))
        ids = instance_id(raw.gpuInstanceId), instance_id(raw.computeInstanceId)
        return Reading(Event(self._uuid(raw.device), kind, raw.eventData, *ids))

    def add(self, device: NvmlDevice) -> None:
        """Register one more device, or the same again after it came back; nothing that waits in the set is lost."""
        self._uuids[device.address] = device.uuid
        self.unwatched.pop(device.uuid, None)
        try:
            types = self._calls.read(device.uuid, "nvmlDeviceGetSupportedEventTypes", device.handle)
            if not types.reason:
                # One type too many and the driver refuses them all.
                mask = types.known & WANTED
                types = self._calls.read(device.uuid, "nvmlDeviceRegisterEvents", device.handle, mask, self._set)
        except NvmlError:
            self.unwatched[device.uuid] = None
            return
        if types.reason:
            self.unwatched[device.uuid] = types.reason

    def _uuid(self, handle: Any) -> str | None:
        """Whose event it is: known from the handle, as a device that is lost by now cannot say."""
        if known := self._uuids.get(handle_address(handle)):
            return known
        try:
            uuid: str | None = self._calls.read(None, "nvmlDeviceGetUUID", handle).value
        except NvmlError:
            return None
        return uuid
