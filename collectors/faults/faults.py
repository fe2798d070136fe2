"""Faults of devices: each occurrence once, whoever reported it, and how many there were.

    faults = Faults(sources=("kernel_log", "nvml"))
    for event in faults.add(reading.events, now_ns, {"00000000:1B:00.0": "GPU-..."}):
        ...                                   # new, to be recorded

The kernel's log and NVML report the same Xid: within five seconds that is one occurrence, for which the log is the
better witness, so an event from NVML waits for it. A metric page shows only the last code and counts as a witness
while there is no other. What is remembered is bounded: nothing that is logged can fill the memory.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

from collectors.faults.xid import PAGING_XIDS, fault
from fleet.telemetry import TEXT_LIMIT, DeviceEventRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from collectors.samples import DeviceEvent

__all__ = ["PAGING_XIDS", "Faults", "event_row"]

COMPANION_NS: Final = 5_000_000_000
MOST_REMEMBERED: Final = 8192
MOST_PER_CODE: Final = 256
"""Of one code, kept for their companions; of a storm of more, some may count twice."""
MOST_COUNTED: Final = 10_000
"""Different series of the counter; a node has far fewer."""
WITNESSES: Final = ("kernel_log", "nvml")

_Kind: TypeAlias = tuple[str, int]
CountKey: TypeAlias = tuple[str, str, int, str]
"""Device, code space, code, severity. A switch has no UUID: its PCI address stands for it."""


class Faults:
    """The faults of one node."""

    def __init__(self, sources: Collection[str] = ()) -> None:
        """`sources` are the witnesses that are being read now; the attribute may be set as they come and go."""
        self.sources: Collection[str] = sources
        self.counts: Counter[CountKey] = Counter()
        self.uncounted = 0
        """Events beyond the number of series that are counted; they are handed out all the same."""
        self._seen: OrderedDict[str, None] = OrderedDict()
        # Both by code: handed out and so far told by one witness only; held back for the log to tell the same.
        self._alone: dict[_Kind, deque[DeviceEvent]] = {}
        self._waiting: dict[_Kind, deque[tuple[int, DeviceEvent]]] = {}

    def add(
        self, events: Iterable[DeviceEvent], now_ns: int, devices: Mapping[str, str] | None = None
    ) -> tuple[DeviceEvent, ...]:
        """Take what was reported; the occurrences that are new by now come back, each with an id and a time.

        `devices` tells the UUID at a PCI address. Call it also without events, so that what waited is let go.
        """
        fresh: list[DeviceEvent] = []
        for event in events:
            complete = self._completed(event, now_ns, devices or {})
            if self._is_known(complete):
                continue
            if complete.source not in WITNESSES:
                # A page repeats what another witness says better; with none, its hint is all there is.
                if not any(source in WITNESSES for source in self.sources):
                    fresh.append(complete)
            elif self._was_told(complete):
                continue
            elif not self._waits(complete, now_ns):
                fresh.append(complete)
        fresh += self._released(now_ns)
        for event in fresh:
            self._count(event)
        return tuple(fresh)

    def _completed(self, event: DeviceEvent, now_ns: int, devices: Mapping[str, str]) -> DeviceEvent:
        uuid = event.uuid or devices.get(event.pci_bus_id or "")
        ts = now_ns if event.ts_nanoseconds is None else event.ts_nanoseconds
        event_id = event.event_id or f"{event.source}/{uuid}/{event.code_space}{event.code}/{ts}"
        if event.source not in WITNESSES and event.fault_class is None:
            judged = fault(event.code_space, event.code, event.text)
            event = replace(event, severity=judged.severity, fault_class=judged.fault_class)
        return replace(event, uuid=uuid, ts_nanoseconds=ts, event_id=event_id)

    def _is_known(self, event: DeviceEvent) -> bool:
        """Whether this very report was taken before."""
        if event.event_id in self._seen:
            self._seen.move_to_end(event.event_id)
            return True
        self._seen[event.event_id] = None
        if len(self._seen) > MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return False

    def _was_told(self, event: DeviceEvent) -> bool:
        """Whether the other witness told this occurrence before. One report pairs with one, so two stay two."""
        told = self._alone.get(_kind(event), ())
        companion = next((before for before in told if _is_same(before, event)), None)
        if companion is None:
            return False
        self._alone[_kind(event)].remove(companion)
        return True

    def _waits(self, event: DeviceEvent, now_ns: int) -> bool:
        """Hold an event of NVML back while the log may tell the same; what the log tells takes the place of it."""
        kind = _kind(event)
        if event.source == "nvml" and "kernel_log" in self.sources:
            held = self._waiting.setdefault(kind, deque())
            if len(held) < MOST_PER_CODE:
                held.append((now_ns + COMPANION_NS, event))
                return True
        if event.source == "kernel_log":
            held = self._waiting.get(kind, deque())
            companion = next((each for each in held if _is_same(each[1], event)), None)
            if companion:
                held.remove(companion)
                return False
        self._keep_alone(event)
        return False

    def _keep_alone(self, event: DeviceEvent) -> None:
        if len(self._alone) > MOST_COUNTED:
            self._alone.clear()
        self._alone.setdefault(_kind(event), deque(maxlen=MOST_PER_CODE)).append(event)

    def _released(self, now_ns: int) -> list[DeviceEvent]:
        """What waited long enough, or waits for a log that nobody reads any more."""
        released = []
        for kind, held in list(self._waiting.items()):
            while held and (held[0][0] <= now_ns or "kernel_log" not in self.sources):
                released.append(held.popleft()[1])
            if not held:
                del self._waiting[kind]
        for event in released:
            self._keep_alone(event)
        return released

    def _count(self, event: DeviceEvent) -> None:
        key = (event.uuid or event.pci_bus_id or "", event.code_space, event.code, event.severity)
        if key in self.counts or len(self.counts) < MOST_COUNTED:
            self.counts[key] += 1
        else:
            self.uncounted += 1


def event_row(event: DeviceEvent) -> DeviceEventRow:
    """An event that `add` returned as a row of the lake; texts are cut to what is stored."""
    event_id = event.event_id
    if len(event_id) > TEXT_LIMIT:
        event_id = sha256(event_id.encode(errors="replace")).hexdigest()
    return DeviceEventRow(
        event_id=event_id,
        event_microsecond=(event.ts_nanoseconds or 0) // 1000,
        source=event.source,
        code_space=event.code_space,
        code=event.code,
        severity=event.severity,
        device=event.uuid,
        pci_bus_id=event.pci_bus_id,
        fault_class=event.fault_class,
        text=None if event.text is None else event.text[:TEXT_LIMIT],
        pid=event.pid,
        gpu_instance_id=event.gpu_instance_id,
        compute_instance_id=event.compute_instance_id,
    )


def _kind(event: DeviceEvent) -> _Kind:
    return event.code_space, event.code


def _is_same(one: DeviceEvent, other: DeviceEvent) -> bool:
    """Whether two witnesses of one code tell of one occurrence; of a device that was lost, one may lack the name."""
    return (
        one.source != other.source
        and (one.uuid is None or other.uuid is None or one.uuid == other.uuid)
        and abs((one.ts_nanoseconds or 0) - (other.ts_nanoseconds or 0)) <= COMPANION_NS
    )
