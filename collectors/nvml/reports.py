"""What devices report by themselves, as events: taken from the driver at each visit, without waiting.

An Xid has its number; the other kinds have the bit by which the driver names them. Corrected memory errors are left
to their counter, as only the trend of them matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collectors.faults.xid import fault
from collectors.nvml.events import KINDS
from collectors.nvml.values import DeviceError, NvmlError, Reason
from collectors.samples import DeviceEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collectors.nvml.device import NvmlDevice
    from collectors.nvml.events import EventWatch
    from collectors.nvml.port import NvmlPort
    from collectors.nvml.values import Event

MOST_EVENTS: Final = 4096
"""Taken in one visit; the driver keeps the rest."""
MOST_ERRORS: Final = 4
"""Answers without an event before the set is given up: a device that is lost may spoil it."""
NOT_TOLD: Final = ("mig_changed", "ecc_corrected")
BITS: Final = {name: bit for bit, name in KINDS.items()}


class Reports:
    """The events of all boards. `unwatched` are the boards that report nothing."""

    def __init__(self, port: NvmlPort, started_at_ns: int) -> None:
        """Open a set for no device yet; a driver that has no events is asked no more."""
        self._port = port
        self._prefix = f"nvml/{started_at_ns}"
        self._count = 0
        self._is_spoilt = False
        self._watch: EventWatch | None = self._opened(())
        self.cut: set[str] = set()
        """The boards whose instances changed, until somebody takes them out."""

    @property
    def is_spoilt(self) -> bool:
        """The set answers with errors only: `renew` it with the boards that can be read."""
        return self._is_spoilt

    def add(self, device: NvmlDevice) -> None:
        """Listen to one more board, or again to one that came back."""
        if self._watch:
            self._watch.add(device)

    def renew(self, devices: Iterable[NvmlDevice], ts_nanoseconds: int) -> list[DeviceEvent]:
        """Listen to these boards by a new set. What waits in the old one is taken before it goes: nothing is lost."""
        old, self._watch = self._watch, self._opened(devices)
        self._is_spoilt = False
        if old is None:
            return []
        left = self._drained(old)
        old.close()
        new = self._drained(self._watch) if self._watch else []
        for event in left:
            if event in new:  # it happened while both sets listened
                new.remove(event)
        return self._told([*left, *new], ts_nanoseconds)

    def drain(self, ts_nanoseconds: int) -> list[DeviceEvent]:
        """What was reported since the last time."""
        if self._watch is None:
            return []
        return self._told(self._drained(self._watch), ts_nanoseconds)

    def close(self) -> None:
        """Free the set."""
        if self._watch:
            self._watch.close()
            self._watch = None

    def _opened(self, devices: Iterable[NvmlDevice]) -> EventWatch | None:
        watch = self._port.events(devices)
        try:
            return watch.__enter__()
        except DeviceError:
            return None
        except NvmlError as error:
            if type(error) is not NvmlError:  # the driver as a whole
                raise
            return None

    def _drained(self, watch: EventWatch) -> list[Event]:
        found: list[Event] = []
        errors = 0
        while len(found) < MOST_EVENTS and errors < MOST_ERRORS:
            try:
                reading = watch.wait(0)
            except DeviceError:  # one of them is lost; which one, its own readings tell
                errors += 1
                continue
            if reading.reason is Reason.TIMEOUT:
                break
            if reading.value is None:
                errors += 1
            else:
                found.append(reading.value)
        self._is_spoilt = self._is_spoilt or errors == MOST_ERRORS
        return found

    def _told(self, events: list[Event], ts_nanoseconds: int) -> list[DeviceEvent]:
        self.cut |= {event.uuid for event in events if event.kind == "mig_changed" and event.uuid}
        return [self._event(event, ts_nanoseconds) for event in events if event.kind not in NOT_TOLD]

    def _event(self, event: Event, ts_nanoseconds: int) -> DeviceEvent:
        self._count += 1
        is_xid = event.kind == "xid"
        code = event.data if is_xid else BITS.get(event.kind) or int(event.kind)
        judged = fault("xid" if is_xid else "nvml", code)
        return DeviceEvent(
            ts_nanoseconds,
            event.uuid,
            "xid" if is_xid else "nvml",
            code,
            source="nvml",
            severity=judged.severity,
            fault_class=judged.fault_class,
            text=None if is_xid else f"{event.kind} {event.data}",
            gpu_instance_id=event.gpu_instance_id,
            compute_instance_id=event.compute_instance_id,
            event_id=f"{self._prefix}/{self._count}",
        )
