"""Pushing to the hub: connect, resume where the hub's answers ended, pause longer and longer while it is away.

The agent never waits for this: it spools a batch, wakes the thread, and goes on. Batches stay on disk until the hub
has them, so memory does not grow while it is away.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from exporters.push_channel import ConnectError, PushSettings
from exporters.push_session import Session
from fleet.catalogue import by_name
from fleet.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from exporters.spool import Spool

__all__ = ["Push", "PushSettings"]

LOG = logging.getLogger("gputally.push")
_SPOOLED_BATCHES: Final = by_name("gputally_push_spooled_batches")
_SPOOLED_BYTES: Final = by_name("gputally_push_spooled_bytes")
_OLDEST_BATCH_SECONDS: Final = by_name("gputally_push_oldest_batch_seconds")
_ACKED_BATCHES: Final = by_name("gputally_push_acked_batches_total")
_DROPPED_BATCHES: Final = by_name("gputally_push_dropped_batches_total")
_FAILED_EVENTS: Final = by_name("gputally_push_failed_events_total")
_ATTEMPTS_TO_LONGEST_PAUSE: Final = 32  # keeps the power of two small; any pause has reached its limit by then
_LOOK_SECONDS: Final = 5.0
_EXIT_SECONDS: Final = 10.0


class Push:
    """The thread that hands the spool to the hub. `start`, `wake` after each append, `stop` at the end."""

    def __init__(
        self,
        spool: Spool,
        settings: PushSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`clock` gives seconds for the time to stop, `draw` a number from 0 to 1 for the pauses."""
        self._spool = spool
        self._settings = settings
        self._clock = clock
        self._draw = draw
        self._condition = threading.Condition()
        self._stop_at: float | None = None
        self._failures: Counter[str] = Counter()
        self._logged = ""
        self._thread = threading.Thread(target=self._run, name="push", daemon=True)

    def start(self) -> None:
        """Begin; may be called once."""
        self._thread.start()

    def wake(self) -> None:
        """Say that a batch was spooled."""
        with self._condition:
            self._condition.notify_all()

    def stop(self, drain_seconds: float) -> None:
        """Push for that long at most, or until nothing is left; what is left then stays in the spool."""
        with self._condition:
            self._stop_at = self._clock() + drain_seconds
            self._condition.notify_all()
        if self._thread.ident is not None:
            self._thread.join(drain_seconds + _EXIT_SECONDS)

    def measurements(self, node: str) -> Iterator[Measurement]:
        """The `gputally_push_*` series of this node. Waits for nobody."""
        status = self._spool.status
        yield Measurement(_SPOOLED_BATCHES, (node,), status.batch_count)
        yield Measurement(_SPOOLED_BYTES, (node,), status.payload_bytes)
        if status.oldest_window_end_second is not None:
            yield Measurement(_OLDEST_BATCH_SECONDS, (node,), time.time() - status.oldest_window_end_second)
        yield Measurement(_ACKED_BATCHES, (node,), status.acked_batches)
        for reason, total in status.dropped_batches.items():
            yield Measurement(_DROPPED_BATCHES, (node, reason), total)
        failures = Counter(dict(self._failures))
        failures.update(status.failed_events)
        for reason, total in failures.items():
            yield Measurement(_FAILED_EVENTS, (node, reason), total)

    def _run(self) -> None:
        attempt = 0
        while self._has_work():
            session = Session(self._spool, self._settings, self._condition, self._seconds_left)
            try:
                session.run()
            except ConnectError as error:
                self._failed(error)
            except Exception:  # a thread's last resort: pushing goes on, and the metric shows it
                LOG.exception("pushing failed")
                self._failures["internal"] += 1
            attempt = 0 if session.stored_batches else min(attempt + 1, _ATTEMPTS_TO_LONGEST_PAUSE)
            if session.stored_batches:
                self._logged = ""
            if not self._pause(attempt):
                return

    def _has_work(self) -> bool:
        """Wait for a batch; False once it is time to stop."""
        with self._condition:
            while self._stop_at is None and not self._spool.status.batch_count:
                self._condition.wait(_LOOK_SECONDS)
            left = self._seconds_left()
            return left is None or (left > 0 and self._spool.status.batch_count > 0)

    def _seconds_left(self) -> float | None:
        return None if self._stop_at is None else self._stop_at - self._clock()

    def _failed(self, error: ConnectError) -> None:
        self._failures[error.reason] += 1
        if error.reason != self._logged:
            LOG.warning("the hub does not take batches", extra={"reason": error.reason, "detail": str(error)})
            self._logged = error.reason

    def _pause(self, attempt: int) -> bool:
        """Wait a random part of a time that doubles: agents that lost one hub must not come back all at once.

        Told to stop meanwhile, one last attempt is made at once. False when there is no time for another after that.
        """
        longest = min(self._settings.longest_pause_seconds, self._settings.first_pause_seconds * 2.0**attempt)
        until = time.monotonic() + longest * self._draw()
        with self._condition:
            was_stopping = self._stop_at is not None
            while (left := until - time.monotonic()) > 0:
                if (allowed := self._seconds_left()) is not None and allowed < left:
                    return not was_stopping
                self._condition.wait(left)
        return True
