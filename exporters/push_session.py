"""One connection to the hub: batches go out in their order, a bounded number unanswered; answers come in any order."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import grpc

from exporters import ingest_pb2
from exporters.batch import stamped
from exporters.push_channel import ConnectError, failure_of, open_channel
from exporters.spool_file import SpoolError
from fleet.errors import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from exporters.push_channel import PushSettings, Reason
    from exporters.spool import Spool, Spooled

LOG = logging.getLogger("gputally.push")
METHOD: Final = "/gputally.ingest.v1.Ingest/Push"
_LATER_REASONS: Final[dict[str, Reason]] = {"identity": "identity", "duplicate_node": "duplicate_node"}
_LOOK_SECONDS: Final = 5.0
_CLOSE_SECONDS: Final = 5.0


class Session:
    """One stream, from connecting to its end; it starts at the oldest batch that the hub has not acknowledged."""

    def __init__(
        self,
        spool: Spool,
        settings: PushSettings,
        condition: threading.Condition,
        seconds_left: Callable[[], float | None],
    ) -> None:
        """`condition` wakes the session: a batch was spooled, or it is to stop.

        `seconds_left` is None while the agent runs, then how long it may go on; less than 0 means now.
        """
        self._spool = spool
        self._settings = settings
        self._condition = condition
        self._seconds_left = seconds_left
        self._spool_id = spool.status.spool_id
        self._sent_until = 0
        self._in_flight: dict[int, tuple[str, float]] = {}
        self._put_off: ConnectError | None = None
        self._over: ConnectError | None = None
        self.stored_batches = 0

    def run(self) -> None:
        """Push until told to stop; ConnectError when the connection ends otherwise, or the hub says later."""
        channel, metadata = open_channel(self._settings)
        requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        with channel:
            stream = channel.stream_stream(METHOD, response_deserializer=ingest_pb2.Answer.FromString)
            call = stream(iter(requests.get, None), metadata=metadata)
            reader = threading.Thread(target=self._read, args=(call,), name="push-answers", daemon=True)
            reader.start()
            try:
                self._send(requests)
            finally:
                requests.put(None)
                call.cancel()
                reader.join(_CLOSE_SECONDS)

    def _send(self, requests: queue.SimpleQueue[bytes | None]) -> None:
        while True:
            for spooled in self._next():
                requests.put(stamped(spooled.payload, time.time_ns()))
            with self._condition:
                if self._over is not None:
                    raise self._over
                if self._put_off is not None and not self._in_flight:
                    raise self._put_off
                left = self._seconds_left()
                if left is not None and (left <= 0 or not (self._in_flight or self._has_more())):
                    return
                waiting = self._seconds_to_answer()
                if waiting <= 0:
                    raise ConnectError("timeout", f"the hub did not answer in {self._settings.answer_seconds} seconds")
                if not self._may_send():
                    self._condition.wait(min(waiting, _LOOK_SECONDS if left is None else left))

    def _next(self) -> list[Spooled]:
        """The batches to send now; they count as in flight from here on."""
        with self._condition:
            if not self._may_send():
                return []
            room = self._settings.batches_in_flight - len(self._in_flight)
        newest = self._spool.status.newest_sequence
        try:
            batches = self._spool.next_batches(self._sent_until, room)
        except SpoolError as error:
            raise ConnectError("spool", str(error)) from None
        with self._condition:
            now = time.monotonic()
            self._in_flight.update((spooled.sequence, (spooled.boot_id, now)) for spooled in batches)
            self._sent_until = batches[-1].sequence if batches else newest
        return batches

    def _may_send(self) -> bool:
        has_room = len(self._in_flight) < self._settings.batches_in_flight
        return has_room and self._put_off is None and self._over is None and self._has_more()

    def _has_more(self) -> bool:
        status = self._spool.status
        if status.spool_id != self._spool_id:
            raise ConnectError("spool", "the spool began anew")
        return status.newest_sequence > self._sent_until

    def _seconds_to_answer(self) -> float:
        if not self._in_flight:
            return self._settings.answer_seconds
        oldest = min(sent_at for _, sent_at in self._in_flight.values())
        return oldest + self._settings.answer_seconds - time.monotonic()

    def _read(self, call: Any) -> None:
        """Take the answers; runs in a thread of its own, because reading blocks until there is one."""
        over = ConnectError("unavailable", "the hub closed the stream")
        try:
            for answer in call:
                self._take(answer)
        except grpc.RpcError as error:
            over = failure_of(error)
        except SpoolError as error:
            over = ConnectError("spool", str(error))
        except Exception:
            LOG.exception("an answer of the hub could not be taken")
            over = ConnectError("internal", "an answer of the hub could not be taken")
        with self._condition:
            self._over = over
            self._condition.notify_all()

    def _take(self, answer: Any) -> None:
        with self._condition:
            boot_id, _ = self._in_flight.get(answer.sequence, (None, 0.0))
        if boot_id is None or (answer.boot_id, answer.spool_id) != (boot_id, self._spool_id):
            return  # said twice, or about what was never sent
        put_off = None
        if answer.outcome == ingest_pb2.Answer.STORED:
            self._spool.ack(boot_id, self._spool_id, answer.sequence)
            self.stored_batches += 1
        elif answer.outcome == ingest_pb2.Answer.REFUSED:
            self._spool.drop(boot_id, self._spool_id, answer.sequence, "refused")
            LOG.error("the hub refused a batch", extra={"batch": answer.sequence, "reason": answer.reason})
        else:
            reason = _LATER_REASONS.get(answer.reason, "later")
            put_off = ConnectError(reason, f"the hub says later: {quoted(answer.reason)}")
        with self._condition:
            del self._in_flight[answer.sequence]
            self._put_off = put_off or self._put_off
            self._condition.notify_all()
