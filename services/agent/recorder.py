"""Everything a node agent knows, second by second: readings go in, rows for the lake and series for the page come out.

It is fed by the thread that keeps time (`tick`) and by those of the other collectors (`claim`, `happened`); the page
may be asked for at any moment. Nothing here waits for anything.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from collectors.faults.faults import Faults, event_row
from collectors.faults.page_xids import PageXids
from collectors.holders.claim_holders import ClaimAges
from collectors.holders.holders import Holders, unattributed
from collectors.rows.device_rows import DeviceRows
from collectors.rows.holding_rows import HoldingRows
from collectors.rows.measured import measured_devices, measured_faults, measured_holders
from collectors.rows.roster import Roster
from collectors.rows.windows import Windows
from fleet.catalogue import by_name
from fleet.measurement import Measurement
from services.agent.evidence import Evidence, Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collectors.holders.pod_folders import PodFolders
    from collectors.holders.procs import ProcessOwners
    from collectors.samples import Claim, DeviceEvent, DeviceSample, Held, Reading, Rejected
    from fleet.telemetry import Row

KERNEL_LOG: Final = "kernel_log"
MOST_DEVICES: Final = 1024
"""No node has so many; a source that makes up names must not take the memory and time of all."""
MOST_EVENTS: Final = 8192
"""Kept for one batch. A storm of more is counted, and its first events tell what it is about."""


@dataclass(frozen=True, slots=True)
class RecorderSettings:
    """What the recorder must know of the node."""

    node: str
    period_seconds: int = 1
    bridge_seconds: int = 300
    expected_gpus: int = 0
    has_scheduler: bool = False
    """Holders are unknown until a scheduler was asked first; else an agent that starts would guess them."""

    @property
    def longest_silence_seconds(self) -> int:
        """Who holds a device is known from others: a device that is slow to answer does not make it unknown."""
        return 3 * self.longest_gap_seconds

    @property
    def longest_gap_seconds(self) -> int:
        """Between two visits farther apart than this nobody looked."""
        return max(5, 3 * self.period_seconds)


@dataclass(frozen=True, slots=True)
class _Claims:
    """What the scheduler says: `is_known` is False when there is one and it cannot be asked."""

    claims: tuple[Claim, ...] | None = None
    allocatable: tuple[str, ...] | None = None
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the page shows; replaced as a whole, so that a page is of one moment."""

    samples: tuple[DeviceSample, ...] = ()
    held: tuple[Held, ...] = ()
    unattributed: tuple[Rejected, ...] = ()
    expected: int = 0
    seen: int = 0
    epochs: Mapping[str, int] = field(default_factory=dict)
    estimated_millijoules: Mapping[str, int] = field(default_factory=dict)


class Recorder:
    """The node's memory. `state` carries it over a restart of the agent."""

    def __init__(
        self,
        settings: RecorderSettings,
        *,
        processes: ProcessOwners | None = None,
        pods: PodFolders | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin anew, or from a state that an earlier process left."""
        state, gap = state or {}, settings.longest_gap_seconds
        self._settings = settings
        self._lock = threading.Lock()
        self._surroundings, self._evidence = Surroundings(processes, pods), Evidence()
        self._windows = Windows(longest_gap_seconds=gap, state=state.get("windows"))
        self._roster = Roster(state=state.get("roster"))
        self._holdings = HoldingRows(
            bridge_seconds=settings.bridge_seconds,
            longest_gap_seconds=settings.longest_silence_seconds,
            state=state.get("holdings"),
        )
        self._device_rows, self._faults, self._page_xids = DeviceRows(), Faults(), PageXids()
        self._holders, self._ages = Holders(), ClaimAges()
        self._claims = _Claims()
        self._scheduler_spoke = state.get("scheduler_spoke") is True
        if settings.has_scheduler:
            self._claims = _Claims(is_known=False)
        self._witnesses: set[str] = set()
        self._rows: dict[str, list[Row]] = {}
        self._seen = _Seen()
        self._conflicts, self._in_conflict, self._blind_ms = 0, frozenset[str](), 0
        self._refused: Counter[str] = Counter()
        # Up to when the kernel's log was recorded by the process before, was heard by this one, and is in rows.
        until_ns = state.get("log_until_ns")
        self._recorded_ns = until_ns if isinstance(until_ns, int) else None
        self._heard_ns = self._log_until_ns = self._recorded_ns
        # In the boot of the state, devices are where they were.
        self._addresses = _addresses(self._roster.known) if state.get("windows") else {}

    def claim(self, claims: tuple[Claim, ...] | None, allocatable: tuple[str, ...] | None, *, is_known: bool) -> None:
        """Take what the scheduler says now. Not known is neither nobody nor no scheduler: holders are unknown then.

        A scheduler that has spoken in this boot and is not there now is away: what it gave out is still held.
        """
        self._scheduler_spoke = self._scheduler_spoke or claims is not None
        self._claims = _Claims(claims, allocatable, is_known and (claims is not None or not self._scheduler_spoke))

    def happened(self, source: str, events: tuple[DeviceEvent, ...] | None, now_ns: int | None = None) -> None:
        """Take what a source of events reports; None when it cannot be read. What is new becomes rows and counts."""
        now_ns = time.time_ns() if now_ns is None else now_ns
        with self._lock:
            if source == KERNEL_LOG and events is not None:
                events = self._not_recorded(events, now_ns)
            (self._witnesses.discard if events is None else self._witnesses.add)(source)
            self._faults.sources = frozenset(self._witnesses)
            self._record_faults(events or (), now_ns)

    def tick(self, source: str, second: int, reading: Reading | None, now_ns: int) -> dict[str, tuple[Row, ...]]:
        """Advance to a whole second with what the devices say; None when they could not be asked.

        Returns the rows of windows that are over, by table; usually none.
        """
        known = reading.samples[:MOST_DEVICES] if reading else ()
        self.happened(source, (*reading.events, *self._page_xids.news(known)) if reading else None, now_ns)
        samples = self._roster.complete(known, lists_holders_only=reading is None or reading.lists_holders_only)
        # Files may be slow (job maps on a network share): whoever asks for the page does not wait for them.
        self._evidence = self._surroundings.look(second, samples, self._claims.claims)
        with self._lock:
            self._refused["too_many_devices"] += len(reading.samples) - len(known) if reading else 0
            held = self._held(second, samples)
            if reading:
                self._keep("seen_device", self._device_rows.changed(second, samples))
            closed = self._windows.advance(second, samples)
            self._keep("device_window", closed)
            self._keep("held_window", self._holdings.advance(second, held))
            self._blind_ms += sum(row.window_ms - row.observed_ms for row in closed)
            self._show(samples, held)
            # A fault is worth a batch of its own: who waits for the window's end may not live to see it.
            return self._taken() if closed or "device_event" in self._rows else {}

    def finish(self, second: int) -> dict[str, tuple[Row, ...]]:
        """The rows of the windows that are open, when the agent stops."""
        with self._lock:
            # No witness will come any more for what waits to be confirmed.
            self._faults.sources = frozenset()
            self._record_faults((), time.time_ns())
            self._keep("device_window", self._windows.close(second))
            self._keep("held_window", self._holdings.close(second))
            return self._taken()

    def state(self) -> dict[str, Any]:
        """What a later process goes on from; plain values for JSON."""
        with self._lock:
            return {
                "windows": self._windows.state(),
                "roster": self._roster.state(),
                "holdings": self._holdings.state(),
                "scheduler_spoke": self._scheduler_spoke,
                "log_until_ns": self._log_until_ns,
            }

    def measurements(self) -> Iterator[Measurement]:
        """The series of devices, holders and faults as they stand."""
        node = self._settings.node
        with self._lock:
            seen, counts = self._seen, dict(self._faults.counts)
            refused_by = {"windows": dict(self._windows.rejected), "recorder": dict(self._refused)}
        yield from measured_devices(
            node, seen.samples, epochs=seen.epochs, estimated_millijoules=seen.estimated_millijoules
        )
        yield from measured_holders(node, seen.held)
        yield from measured_faults(node, counts, seen.samples)
        expected = self._settings.expected_gpus or seen.expected
        yield Measurement(by_name("gputally_agent_expected_gpus"), (node,), expected)
        yield Measurement(by_name("gputally_agent_seen_gpus"), (node,), seen.seen)
        yield Measurement(by_name("gputally_agent_device_conflict_events_total"), (node,), self._conflicts)
        yield Measurement(by_name("gputally_agent_window_blind_seconds_total"), (node,), self._blind_ms / 1000)
        for part, reasons in refused_by.items():
            for reason, count in sorted(reasons.items()):
                if count:
                    yield Measurement(by_name("gputally_collector_rejected_events_total"), (node, part, reason), count)
        for refused in seen.unattributed:
            yield Measurement(by_name("gputally_agent_unattributed_claims"), (node, refused.reason), refused.count)

    def _held(self, second: int, samples: tuple[DeviceSample, ...]) -> tuple[Held, ...] | None:
        """Who holds what now; None when nobody can say."""
        claims, evidence = self._claims, self._evidence
        if not claims.is_known:
            return None
        held = self._holders.now(
            second,
            samples,
            claims.claims,
            evidence.owners,
            allocatable=claims.allocatable,
            jobs=evidence.jobs,
            pods=evidence.pods,
            since=self._ages.seen(second, claims.claims) if claims.claims else None,
        )
        if held is not self._seen.held:
            conflicts = frozenset(row.device for row in held if row.conflict)
            self._conflicts += len(conflicts - self._in_conflict)
            self._in_conflict = conflicts
        return held

    def _show(self, samples: tuple[DeviceSample, ...], held: tuple[Held, ...] | None) -> None:
        before = self._seen
        is_same = held is before.held and len(samples) == len(before.samples)
        self._seen = _Seen(
            samples,
            held or (),
            before.unattributed if is_same else unattributed(samples, self._claims.claims or ()),
            self._roster.expected,
            self._roster.seen,
            self._windows.epochs(),
            self._windows.estimated_millijoules(),
        )

    def _not_recorded(self, events: tuple[DeviceEvent, ...], now_ns: int) -> tuple[DeviceEvent, ...]:
        """What the log says that no process has recorded yet; only the first visit reads what was there before it."""
        since_ns, self._recorded_ns, self._heard_ns = self._recorded_ns, None, now_ns
        if since_ns is None:
            return events
        return tuple(event for event in events if (event.ts_nanoseconds or now_ns) > since_ns)

    def _record_faults(self, events: Sequence[DeviceEvent], now_ns: int) -> None:
        fresh = self._faults.add(events, now_ns, _addresses(self._seen.samples) or self._addresses)
        kept = fresh[: max(0, MOST_EVENTS - len(self._rows.get("device_event", ())))]
        self._refused["too_many_events"] += len(fresh) - len(kept)
        self._keep("device_event", [event_row(event) for event in kept])

    def _keep(self, table: str, rows: Sequence[Row]) -> None:
        if rows:
            self._rows.setdefault(table, []).extend(rows)

    def _taken(self) -> dict[str, tuple[Row, ...]]:
        taken = {table: tuple(rows) for table, rows in self._rows.items()}
        self._rows, self._log_until_ns = {}, self._heard_ns
        return taken


def _addresses(samples: tuple[DeviceSample, ...]) -> dict[str, str]:
    """PCI addresses to UUIDs: the kernel's log knows a device by its place only."""
    return {s.pci_bus_id: s.uuid for s in samples if s.pci_bus_id and s.uuid and s.kind == "gpu"}
