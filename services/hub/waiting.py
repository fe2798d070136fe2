"""A batch on its way through the hub, what is answered to it, and the budget of what may be on the way at once."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from exporters.ingest_pb2 import Answer, Batch

if TYPE_CHECKING:
    from datetime import datetime

STORED: Final[int] = Answer.STORED
REFUSED: Final[int] = Answer.REFUSED
LATER: Final[int] = Answer.LATER
REASON_LIMIT: Final = 500


class Stream(Protocol):
    """Where a batch came from, and where its answer goes."""

    def answered(self, waiting: Waiting, answer: Answer) -> None:
        """Take the answer; called on the event loop."""


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A batch that was received and not answered."""

    batch: Batch
    stream: Stream
    received_at: datetime
    row_count: int
    byte_count: int


Answered: TypeAlias = tuple[Waiting, Answer]


def answer_to(batch: Batch, outcome: int, reason: str = "") -> Answer:
    """The answer that names its batch. A reason is cut: it may quote what the sender wrote."""
    return Answer(
        boot_id=batch.boot_id,
        spool_id=batch.spool_id,
        sequence=batch.sequence,
        outcome=outcome,  # type: ignore[arg-type]  # the stub names the enum, its values are plain numbers
        reason=reason[:REASON_LIMIT],
    )


class Budget:
    """Rows and bytes that may wait for a commit. All methods are called on the event loop."""

    def __init__(self, rows: int, size: int) -> None:
        """Start empty."""
        self._row_limit, self._byte_limit = rows, size
        self.rows = 0
        self.bytes = 0
        self._queue: deque[tuple[asyncio.Future[None], int, int]] = deque()

    async def take(self, rows: int, size: int) -> None:
        """Wait until there is room, first come first served, and take it. What is larger than all of it waits alone."""
        if not self._queue and self._has_room(rows, size):
            self._add(rows, size)
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((turn, rows, size))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(rows, size)
            raise

    def give(self, rows: int, size: int) -> None:
        """Give room back, and hand it to those who wait."""
        self._add(-rows, -size)
        while self._queue:
            turn, wanted_rows, wanted_size = self._queue[0]
            if turn.done():
                self._queue.popleft()
            elif self._has_room(wanted_rows, wanted_size):
                self._queue.popleft()
                self._add(wanted_rows, wanted_size)
                turn.set_result(None)
            else:
                return

    def _has_room(self, rows: int, size: int) -> bool:
        is_empty = self.rows == 0 and self.bytes == 0
        return is_empty or (self.rows + rows <= self._row_limit and self.bytes + size <= self._byte_limit)

    def _add(self, rows: int, size: int) -> None:
        self.rows += rows
        self.bytes += size
