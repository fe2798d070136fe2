"""The gRPC service: reads batches from a stream while there is room for them, and writes the answers back.

Nothing is read while the queue is full: HTTP/2's flow control makes the senders wait and the hub's memory stays flat.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import grpc

from exporters.ingest_pb2 import Answer, Batch
from fleet.identity import bounded_name
from fleet.telemetry import TABLES
from services.hub.identity import peer_of
from services.hub.waiting import LATER, REFUSED, Budget, Waiting, answer_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from exporters.hub import HubMetrics
    from services.hub.claims import NodeClaims
    from services.hub.committer import Committer
    from services.hub.identity import Identity, Peer
    from services.hub.waiting import Answered
    from store.telemetry_arrow import BatchLimits

LOG = logging.getLogger("gputally.hub")
SERVICE: Final = "gputally.ingest.v1.Ingest"
UNANSWERED_BATCHES: Final = 64
"""Batches of one stream on the way at once."""
NODES_PER_STREAM: Final = 64
SEQUENCE_MAX: Final = 2**63 - 1


@dataclass(eq=False)
class OpenStream:
    """One call of `Push`: how many of its batches wait, and the answers not yet written."""

    peer: Peer
    answers: asyncio.Queue[Answer | None] = field(default_factory=asyncio.Queue)
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(UNANSWERED_BATCHES))
    nodes: set[tuple[str, str]] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    waiting_count: int = 0
    has_ended: bool = False
    budget: Budget | None = None

    def answer(self, answer: Answer) -> None:
        """Queue an answer for writing."""
        self.answers.put_nowait(answer)

    def answered(self, waiting: Waiting, answer: Answer) -> None:
        """The committer answered one of this stream's batches."""
        if self.budget:
            self.budget.give(waiting.row_count, waiting.byte_count)
        self.waiting_count -= 1
        self.answer(answer)
        self.finish()

    def end(self) -> None:
        """Nothing more is read."""
        self.has_ended = True
        self.finish()

    def finish(self) -> None:
        """Close the answers once nothing more can come."""
        if self.has_ended and self.waiting_count == 0:
            self.answers.put_nowait(None)


class Intake:
    """Handles all streams; everything but the commit runs on one event loop."""

    def __init__(
        self, identity: Identity, claims: NodeClaims, budget: Budget, metrics: HubMetrics, limits: BatchLimits
    ) -> None:
        """The committer comes with `start`, as it delivers its answers here."""
        self._identity = identity
        self._claims = claims
        self._budget = budget
        self._metrics = metrics
        self._limits = limits
        self._committer: Committer | None = None
        self._loop = asyncio.get_running_loop()
        self._readers: set[asyncio.Task[None]] = set()
        self._is_draining = False

    def start(self, committer: Committer) -> None:
        """From now on batches are taken."""
        self._committer = committer

    def handler(self) -> Any:
        """The handler to register with a gRPC server."""
        method = grpc.stream_stream_rpc_method_handler(
            self.push, request_deserializer=Batch.FromString, response_serializer=Answer.SerializeToString
        )
        return grpc.method_handlers_generic_handler(SERVICE, {"Push": method})

    async def push(self, requests: AsyncIterator[Batch], context: Any) -> AsyncIterator[Answer]:
        """Answer each batch after it is committed, in any order; end when the sender has ended and all is answered."""
        stream = OpenStream(peer_of(context.auth_context(), context.invocation_metadata() or ()), budget=self._budget)
        reader = asyncio.create_task(self._read(requests, stream))
        self._readers.add(reader)
        try:
            while (answer := await stream.answers.get()) is not None:
                yield answer
                stream.room.release()
            if reader.done() and not reader.cancelled() and reader.exception():
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "that was no batch")
        finally:
            reader.cancel()
            self._readers.discard(reader)
            self._claims.release(stream)

    def deliver(self, answered: Sequence[Answered]) -> None:
        """Hand answers to their streams; called by the committer's thread."""
        self._loop.call_soon_threadsafe(self._hand_out, answered)

    def drain(self) -> None:
        """Read nothing more; what was read is still committed and answered, then the streams end."""
        self._is_draining = True
        for reader in self._readers:
            reader.cancel()

    async def ended(self, seconds: float) -> None:
        """Wait until every stream has ended, or so long."""
        until = time.monotonic() + seconds
        while self._readers and time.monotonic() < until:
            await asyncio.sleep(0.01)

    def _hand_out(self, answered: Sequence[Answered]) -> None:
        for waiting, answer in answered:
            waiting.stream.answered(waiting, answer)
        self._metrics.waiting(self._budget.rows)

    async def _read(self, requests: AsyncIterator[Batch], stream: OpenStream) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            try:
                await self._read_all(requests, stream)
            finally:
                stream.end()

    async def _read_all(self, requests: AsyncIterator[Batch], stream: OpenStream) -> None:
        while not self._is_draining:
            await stream.room.acquire()
            batch = await anext(requests, None)
            if batch is None:
                return
            self._metrics.received()
            if refusal := self._judge(batch, stream):
                outcome, reason = refusal
                word = reason.partition(":")[0]
                self._metrics.refused(word)
                if word not in stream.told:
                    # Once for each stream and word: a sender that tries for ever must not fill the log.
                    stream.told.add(word)
                    LOG.warning("batches are not taken", extra={"node": batch.node, "reason": reason})
                stream.answer(answer_to(batch, outcome, reason))
                continue
            await self._take(batch, stream)

    async def _take(self, batch: Batch, stream: OpenStream) -> None:
        now = datetime.now(UTC)
        if batch.sent_at_nanoseconds:
            self._metrics.clock_skew(batch.node, batch.sent_at_nanoseconds / 1e9 - now.timestamp())
        rows, size = sum(table.row_count for table in batch.tables), batch.ByteSize()
        await self._budget.take(rows, size)
        self._metrics.waiting(self._budget.rows)
        stream.waiting_count += 1
        assert self._committer, "batches are taken after start()"
        self._committer.put(Waiting(batch, stream, now, rows, size))

    def _judge(self, batch: Batch, stream: OpenStream) -> tuple[int, str] | None:
        """What to answer at once, without the lake; None for a batch to take. Agents know the words of "later"."""
        if reason := self._malformed(batch):
            return REFUSED, reason
        if not self._identity.allows(stream.peer, batch.node):
            return LATER, "identity"
        node = (batch.cluster, batch.node)
        if len(stream.nodes) >= NODES_PER_STREAM and node not in stream.nodes:
            return LATER, "identity"
        if not self._claims.admit(stream, node, (batch.boot_id, batch.spool_id), time.monotonic()):
            return LATER, "duplicate_node"
        stream.nodes.add(node)
        return None

    def _malformed(self, batch: Batch) -> str | None:
        for name in ("cluster", "node", "boot_id", "spool_id"):
            try:
                bounded_name(getattr(batch, name))
            except ValueError as error:
                return f"batch: {name}: {error}"
        if batch.sequence > SEQUENCE_MAX:
            return "batch: sequence: is beyond 63 bits"
        if len(batch.tables) > len(TABLES):
            return f"table: {len(batch.tables)} tables in a batch"
        if batch.ByteSize() > self._limits.bytes:
            return f"size: {batch.ByteSize()} bytes, more than {self._limits.bytes} in a batch"
        if sum(table.row_count for table in batch.tables) > self._limits.rows:
            return f"size: more than {self._limits.rows} rows in a batch"
        return None
