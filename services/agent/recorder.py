"""Everything a node agent knows, second by second: readings go in, rows for the lake and series for the page come out.

It is fed by the thread that keeps time (`tick`) and by those of the other collectors (`claim`, `happened`); the page
may be asked for at any moment. Nothing here waits for anything.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from collectors.faults.faults import Faults, event_row
from collectors.holders.claim_holders import ClaimAges
from collectors.holders.holders import Holders, unattributed
from collectors.rows.device_rows import DeviceRows
from collectors.rows.holding_rows import HoldingRows
from collectors.rows.measured import measured_devices, measured_faults, measured_holders
from collectors.rows.roster import Roster
from collectors.rows.windows import Windows
from fleet.catalogue import by_name
from fleet.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collectors.holders.pod_folders import KnownPods, PodFolders
    from collectors.holders.procs import ProcessOwner, ProcessOwners
    from collectors.samples import Claim, DeviceEvent, DeviceSample, Held, Reading, Rejected
    from fleet.telemetry import Row

EVIDENCE_EVERY_SECONDS: Final = 5
"""How often the host is asked whose the processes and which the pods are."""


@dataclass(frozen=True, slots=True)
class RecorderSettings:
    """What the recorder must know of the node."""

    node: str
    period_seconds: int = 1
    bridge_seconds: int = 300
    expected_gpus: int = 0

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
class _Evidence:
    """What the host says: whose the processes are, which jobs were given a device, which pods there are."""

    owners: Mapping[int, ProcessOwner] | None = None
    jobs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pods: KnownPods | None = None


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
        self._processes, self._pods = processes, pods
        self._lock = threading.Lock()
        self._windows = Windows(longest_gap_seconds=gap, state=state.get("windows"))
        self._roster = Roster(state=state.get("roster"))
        self._holdings = HoldingRows(
            bridge_seconds=settings.bridge_seconds, longest_gap_seconds=gap, state=state.get("holdings")
        )
        self._device_rows, self._faults = DeviceRows(), Faults()
        self._holders, self._ages = Holders(), ClaimAges()
        self._claims, self._evidence, self._evidence_at = _Claims(), _Evidence(), 0
        self._witnesses: set[str] = set()
        self._rows: dict[str, list[Row]] = {}
        self._seen = _Seen()
        self._conflicts, self._in_conflict, self._blind_ms = 0, frozenset[str](), 0

    def claim(self, claims: tuple[Claim, ...] | None, allocatable: tuple[str, ...] | None, *, is_known: bool) -> None:
        """Take what the scheduler says now. Not known is neither nobody nor no scheduler: holders are unknown then."""
        self._claims = _Claims(claims, allocatable, is_known)

    def happened(self, source: str, events: tuple[DeviceEvent, ...] | None, now_ns: int | None = None) -> None:
        """Take what a source of events reports; None when it cannot be read. What is new becomes rows and counts."""
        now_ns = time.time_ns() if now_ns is None else now_ns
        with self._lock:
            (self._witnesses.discard if events is None else self._witnesses.add)(source)
            self._faults.sources = frozenset(self._witnesses)
            fresh = self._faults.add(events or (), now_ns, _addresses(self._seen.samples))
            self._keep("device_event", [event_row(event) for event in fresh])

    def tick(self, source: str, second: int, reading: Reading | None, now_ns: int) -> dict[str, tuple[Row, ...]]:
        """Advance to a whole second with what the devices say; None when they could not be asked.

        Returns the rows of windows that are over, by table; usually none.
        """
        self.happened(source, reading.events if reading else None, now_ns)
        known = reading.samples if reading else ()
        with self._lock:
            samples = self._roster.complete(known, lists_holders_only=reading is None or reading.lists_holders_only)
            self._look_around(second, samples)
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
            }

    def measurements(self) -> Iterator[Measurement]:
        """The series of devices, holders and faults as they stand."""
        seen, node = self._seen, self._settings.node
        with self._lock:
            counts = dict(self._faults.counts)
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
        for reason, count in sorted(self._windows.rejected.items()):
            yield Measurement(by_name("gputally_collector_rejected_events_total"), (node, "windows", reason), count)
        for refused in seen.unattributed:
            yield Measurement(by_name("gputally_agent_unattributed_claims"), (node, refused.reason), refused.count)

    def _look_around(self, second: int, samples: tuple[DeviceSample, ...]) -> None:
        if 0 <= second - self._evidence_at < EVIDENCE_EVERY_SECONDS:
            return
        self._evidence_at = second
        self._evidence = _Evidence(
            self._processes.of_devices(samples) if self._processes else None,
            self._processes.jobs(samples) if self._processes else {},
            self._pods.look() if self._pods and self._claims.claims is not None else None,
        )

    def _held(self, second: int, samples: tuple[DeviceSample, ...]) -> tuple[Held, ...] | None:
        """Who holds what now; None when nobody can say."""
        claims, evidence = self._claims, self._evidence
        if not claims.is_known:
            return None
        held = self._holders.now(
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

    def _keep(self, table: str, rows: Sequence[Row]) -> None:
        if rows:
            self._rows.setdefault(table, []).extend(rows)

    def _taken(self) -> dict[str, tuple[Row, ...]]:
        taken = {table: tuple(rows) for table, rows in self._rows.items()}
        self._rows = {}
        return taken


def _addresses(samples: tuple[DeviceSample, ...]) -> dict[str, str]:
    """PCI addresses to UUIDs: the kernel's log knows a device by its place only."""
    return {s.pci_bus_id: s.uuid for s in samples if s.pci_bus_id and s.uuid and s.kind == "gpu"}
