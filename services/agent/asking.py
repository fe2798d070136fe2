"""Ask one source again and again, in a thread of its own, until it is told to end."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from collectors.guard import Guard, Visit

log = logging.getLogger(__name__)


class Asking:
    """The guard of a source, how often it is visited, and what is done with each visit.

    `ended` is called once, after the last visit was used, by the thread itself: so nothing comes after it. A source
    that `is_visited_at_stop` tells what was added up to then, if it answered before: one that hangs is not waited for.
    """

    def __init__(
        self,
        guard: Guard[Any],
        period_seconds: float,
        use: Callable[[Visit[Any]], None],
        ended: Callable[[], None] | None = None,
        *,
        is_visited_at_stop: bool = False,
    ) -> None:
        """Nothing runs before `start`."""
        self.guard = guard
        self._is_visited_at_stop, self._is_stop = is_visited_at_stop, False
        self._period_seconds = period_seconds
        self._use, self._ended = use, ended
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=guard.collector, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """Tell the thread to end after the visit that it is at; it is not waited for."""
        self._stopping.set()

    def stop(self) -> None:
        """As `end`, when the agent stops: the source is still there, unless it was told to end before."""
        self._is_stop = not self._stopping.is_set()
        self.end()

    def join(self, timeout_seconds: float) -> bool:
        """Wait until the thread has ended, and say whether it has; one that never began has."""
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        said: str | None = None
        while not self._stopping.is_set():
            said = self._visit(said)
            self._stopping.wait(self._period_seconds)
        if self._is_stop and self._is_visited_at_stop and said == "":
            self._visit(said)
        self.guard.close()
        if self._ended:
            self._told("the end of a source was lost", self._ended)

    def _visit(self, said: str | None) -> str:
        """Visit the source, and return why it did not answer, which is logged unless it was `said` before."""
        visit = self.guard.visit()
        if visit.reason and visit.reason != said:
            log.warning("collector", extra={"collector": self.guard.collector, "reason": visit.reason})
        self._told("a visit was lost", partial(self._use, visit))
        return visit.reason or ""

    def _told(self, lost: str, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception:
            # The thread must live: a source that nobody asks any more would stand as it was, and be believed.
            log.exception(lost, extra={"collector": self.guard.collector})
