"""The guard of a collector: each visit has a deadline, an outcome and a duration, and its data an age.

    guard = Guard("nvml", ProcessRunner("nvml", {}), deadline_seconds=5)
    visit = guard.visit()      # never raises, never takes longer than the deadline
    guard.status()             # may be asked from another thread at any time

One guard is visited by one thread; nothing that it waits for holds a lock that `status` needs.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Literal

from collectors.collector import SourceAbsentError
from collectors.runners import OverdueError, T
from fleet.catalogue import by_name
from fleet.errors import GputallyError, one_line
from fleet.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from collectors.runners import Runner

Outcome = Literal["ok", "failed", "overdue", "absent"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("ok", "failed", "overdue", "absent")
REASON_LIMIT: Final = 300
_ABSENT_PAUSE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Visit(Generic[T]):
    """How one visit ended; `reading` only when it is ok, `reason` only when it is not."""

    outcome: Outcome
    duration_seconds: float
    reading: T | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a collector now. `staleness_seconds` is the age of its newest data, None before there is any."""

    collector: str
    outcome: Outcome | None
    reason: str | None
    duration_seconds: float
    staleness_seconds: float | None
    failures: Mapping[str, int]
    rejected: Mapping[str, int]
    replaced: int


class Guard(Generic[T]):
    """Visits one collector and keeps the record of it."""

    def __init__(
        self,
        collector: str,
        runner: Runner[T],
        *,
        deadline_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the collector's name and what runs it; nothing is visited yet."""
        self.collector = collector
        self._runner = runner
        self._deadline_seconds = deadline_seconds
        self._clock = clock
        self._last: Visit[T] | None = None
        self._began_at: float | None = None
        self._good_at: float | None = None
        self._absent_until: float | None = None
        self._failures: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()

    def visit(self) -> Visit[T]:
        """Visit the collector. A source that is not on this node is only looked for once a minute."""
        began = self._clock()
        if self._absent_until is not None and began < self._absent_until and self._last:
            return self._last
        self._began_at = began
        last = self._visited(began)
        self._absent_until = self._clock() + _ABSENT_PAUSE_SECONDS if last.outcome == "absent" else None
        if last.reading:
            self._good_at = self._clock()
            for rejected in last.reading.rejected:
                self._rejected[rejected.reason] += rejected.count
        else:
            self._failures[last.outcome] += 1
        self._last, self._began_at = last, None
        return last

    def _visited(self, began: float) -> Visit[T]:
        outcome: Outcome
        try:
            reading = self._runner.ask(self._deadline_seconds)
            return Visit("ok", self._clock() - began, reading)
        except OverdueError as error:
            outcome, reason = "overdue", str(error)
        except SourceAbsentError as error:
            outcome, reason = "absent", str(error)
        except GputallyError as error:
            outcome, reason = "failed", str(error)
        except Exception as error:  # noqa: BLE001 - a bug in one collector is told and must not stop the node's others
            outcome, reason = "failed", f"{type(error).__name__}: {error}"
        return Visit(outcome, self._clock() - began, None, one_line(reason)[:REASON_LIMIT])

    def status(self) -> Status:
        """The record as it stands, also while a visit is under way."""
        last, began, good, now = self._last, self._began_at, self._good_at, self._clock()
        running = now - began if began is not None else 0.0
        is_late = running > self._deadline_seconds
        return Status(
            self.collector,
            "overdue" if is_late else last.outcome if last else None,
            last.reason if last else None,
            max(running, last.duration_seconds if last else 0.0),
            None if good is None else now - good,
            dict(self._failures),
            dict(self._rejected),
            self._runner.replaced,
        )

    def close(self) -> None:
        """End the collector."""
        self._runner.close()


def measured_status(node: str, status: Status) -> Iterator[Measurement]:
    """The metrics of one collector; what has not happened yet is absent."""
    labels = (node, status.collector)
    if status.outcome:
        yield Measurement(by_name("gputally_collector_outcome_info"), (*labels, status.outcome), 1)
        yield Measurement(by_name("gputally_collector_visit_duration_seconds"), labels, status.duration_seconds)
    if status.staleness_seconds is not None:
        yield Measurement(by_name("gputally_collector_staleness_seconds"), labels, status.staleness_seconds)
    for outcome in OUTCOMES[1:]:
        count = status.failures.get(outcome, 0)
        yield Measurement(by_name("gputally_collector_failed_events_total"), (*labels, outcome), count)
    yield Measurement(by_name("gputally_collector_replaced_events_total"), labels, status.replaced)
    for reason, count in sorted(status.rejected.items()):
        yield Measurement(by_name("gputally_collector_rejected_events_total"), (*labels, reason), count)
