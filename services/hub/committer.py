"""The one thread that writes: gathers batches into a group, commits it, and only then answers.

An answer "stored" is a promise, so it follows the commit. A batch that is at fault is refused alone; when the lake is
at fault, everything is answered "later" and stays with its sender, and the next group tries again.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from fleet.errors import LakeBusyError, LakeError
from fleet.telemetry import WINDOW_SECONDS
from services.hub.grouping import decoded, refused_rows
from services.hub.waiting import LATER, REFUSED, STORED, Answered, Waiting, answer_to
from store.telemetry import Appender, RowsRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from exporters.hub import HubMetrics
    from services.hub.health import Health
    from store.lake import Lake
    from store.telemetry import StoredBatch
    from store.telemetry_arrow import BatchLimits

LOG = logging.getLogger("gputally.hub")
PAUSE_SECONDS: Final = 0.5
"""After a failure: the lake is not asked again at once, senders wait meanwhile."""


class Committer:
    """Takes batches from the event loop by `put`, hands answers back through `deliver`."""

    def __init__(
        self,
        open_lake: Callable[[], Lake],
        deliver: Callable[[Sequence[Answered]], None],
        metrics: HubMetrics,
        health: Health,
        *,
        limits: BatchLimits,
        group_rows: int,
        group_seconds: float,
    ) -> None:
        """Open the lake, so that one that cannot be opened is told at the start. LakeError as `Lake.open`."""
        self._open_lake = open_lake
        self._lake: Lake | None = open_lake()
        self._appender = Appender(self._lake)
        self._deliver = deliver
        self._metrics = metrics
        self._health = health
        self._limits = limits
        self._group_rows = group_rows
        self._group_seconds = group_seconds
        self._arrived: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)

    def start(self) -> None:
        """Begin to commit."""
        self._thread.start()

    def put(self, waiting: Waiting) -> None:
        """Hand over a batch; how many may wait is bounded by whoever calls."""
        self._health.arrived()
        self._arrived.put(waiting)

    def close(self) -> None:
        """Commit and answer what was put, then end and close the lake."""
        self._arrived.put(None)
        self._thread.join()

    def _run(self) -> None:
        is_open = True
        while is_open:
            group, is_open = self._gather()
            if group:
                answers = self._commit_guarded(group)
                self._health.answered(len(group))
                self._deliver(answers)
        if self._lake:
            self._lake.close()

    def _gather(self) -> tuple[list[Waiting], bool]:
        """Wait for a batch, then for more until the group is full or its time is over; False when told to end."""
        group: list[Waiting] = []
        rows = 0
        until = 0.0
        while rows < self._group_rows:
            try:
                timeout = max(until - time.monotonic(), 0.0) if group else None
                waiting = self._arrived.get(timeout=timeout)
            except queue.Empty:
                break
            if waiting is None:
                return group, False
            if not group:
                until = time.monotonic() + self._group_seconds
            group.append(waiting)
            rows += waiting.row_count
        return group, True

    def _commit_guarded(self, group: Sequence[Waiting]) -> list[Answered]:
        """A defect must not stop the hub, lose what it was sent, or hold up batches that do not meet it."""
        try:
            return self._commit(group)
        except Exception:
            if len(group) > 1:
                return [answer for waiting in group for answer in self._commit_guarded([waiting])]
            LOG.exception("a batch could not be committed", extra={"node": group[0].batch.node})
            self._health.failed("internal error")
            return [self._later(group[0], "internal")]

    def _commit(self, group: Sequence[Waiting]) -> list[Answered]:
        now = time.time()
        kept, answers = decoded(group, self._limits)
        refused = refused_rows([batch for _, batch in kept], int(now))
        for place, error in refused.items():
            answers.append((kept[place][0], answer_to(kept[place][0].batch, REFUSED, f"{error.reason}: {error}")))
        for _, answer in answers:
            self._metrics.refused(answer.reason.partition(":")[0])
        good = [pair for place, pair in enumerate(kept) if place not in refused]
        return answers + (self._store(good) if good else [])

    def _store(self, pairs: Sequence[tuple[Waiting, StoredBatch]]) -> list[Answered]:
        """Commit the batches together; one by one when some of them cannot be stored."""
        began = time.monotonic()
        try:
            if self._lake is None:
                self._lake = self._open_lake()
                self._appender = Appender(self._lake)
            done = self._appender.append([batch for _, batch in pairs])
        except RowsRefusedError as error:
            if len(pairs) > 1:
                return [answer for pair in pairs for answer in self._store([pair])]
            LOG.warning("the lake cannot hold a batch", extra={"node": pairs[0][1].node, "error": error})
            self._metrics.refused("value")
            return [(pairs[0][0], answer_to(pairs[0][0].batch, REFUSED, f"value: {error}"))]
        except (LakeError, OSError) as error:
            return self._failed(pairs, error)
        self._metrics.committed(time.monotonic() - began)
        self._count(pairs, done.known, done.row_counts)
        self._health.worked()
        return [(waiting, answer_to(waiting.batch, STORED)) for waiting, _ in pairs]

    def _failed(self, pairs: Sequence[tuple[Waiting, StoredBatch]], error: Exception) -> list[Answered]:
        reason = "lake_busy" if isinstance(error, LakeBusyError) else "lake_failed"
        LOG.error("the lake takes nothing, senders keep their batches", extra={"error": error, "batches": len(pairs)})
        self._health.failed(str(error))
        if reason == "lake_failed" and self._lake:
            # A connection may be of no use after a failed write: the next group opens the lake anew.
            self._lake.close()
            self._lake = None
        time.sleep(PAUSE_SECONDS)
        return [self._later(waiting, reason) for waiting, _ in pairs]

    def _later(self, waiting: Waiting, reason: str) -> Answered:
        self._metrics.refused(reason)
        return waiting, answer_to(waiting.batch, LATER, reason)

    def _count(
        self, pairs: Sequence[tuple[Waiting, StoredBatch]], known: frozenset[int], rows: Mapping[str, int]
    ) -> None:
        self._metrics.acked("stored", len(pairs) - len(known))
        self._metrics.acked("known", len(known))
        for table, count in rows.items():
            self._metrics.stored(table, count)
        now = datetime.now(UTC).timestamp()
        for place, (_, batch) in enumerate(pairs):
            newest = batch.newest_window_second
            if place not in known and newest is not None:
                self._metrics.lag(now - newest - WINDOW_SECONDS)
