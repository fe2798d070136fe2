"""The model servers of a node: each is visited by itself, becomes rows for the lake and series for the page.

What gateways count becomes series only: the tokens of their clients reach the lake by their logs, and two sources of
the same tokens would be counted twice.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from collectors.guard import Guard
from collectors.runners import ThreadRunner
from collectors.serving.collector import Visit
from collectors.serving.gateway import GatewayVisit
from collectors.serving.measured import measured_visit
from collectors.serving.measured_gateway import measured_gateway
from collectors.serving.samples import ServingReading
from collectors.serving.windows import EngineWindows
from fleet.catalogue import by_name
from fleet.measurement import Measurement
from services.agent.asking import Asking
from services.agent.engine_rows import PendingRows
from services.agent.engine_states import states_of
from services.agent.pod_visits import of_pod, of_whole_life
from services.agent.targets import POD, EngineReading, EngineTarget, Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from collectors import guard
    from fleet.telemetry import Row

DEADLINE_SECONDS: Final = 20.0
"""A page may take 10 seconds; the question for the version comes on top."""
COLLECTOR: Final = "engines"
_LEFT: Final = "left "
"""Before the key of a pod that is gone: whoever has that key next is another."""
_NOTHING: Final = Visit(ServingReading(), None)


@dataclass(eq=False, slots=True)
class Watched:
    """One server that is visited: its open windows, and what the page shows of it (None if it does not answer)."""

    target: Target
    windows: EngineWindows
    shown: Visit | GatewayVisit | None = None
    is_left: bool = False
    is_saved: bool = False
    began_second: int | None = field(init=False)

    def __post_init__(self) -> None:
        """The first visit tells what was done since the server began."""
        self.began_second = self.target.began_second

    def take(self, found: Visit | GatewayVisit | None, second: int) -> Iterable[Row]:
        """Take a visit; return the rows of windows that are over."""
        if isinstance(found, GatewayVisit):
            self.shown = found
            return ()
        if found is not None:
            found = self._counted(found, second)
            if self.target.pod:
                found = of_pod(found, self.target.pod)
        self.shown = found
        return self.windows.advance(second, self.target.key, found)

    def _counted(self, visit: Visit, second: int) -> Visit:
        began, self.began_second = self.began_second, None
        if visit.step is not None or began is None:
            return visit
        if began < second:
            # What it did is spread over its life.
            self.windows.advance(began, self.target.key, _NOTHING)
        return of_whole_life(visit, max(0, second - began))


class Engines:
    """All model servers of a node. Each is fed by a thread of its own; the page may be asked for at any moment."""

    def __init__(self, node: str, before: Mapping[str, EngineWindows] | None = None) -> None:
        """Take the windows that an earlier process left, by the key of whom they were kept for."""
        self._node = node
        self._lock = threading.Lock()
        self._watched: list[Watched] = []
        self._unwatched = dict(before or {})
        self._stopped: dict[str, EngineWindows] = {}
        self._pending = PendingRows()
        self._refused: Counter[str] = Counter()

    def watch(self, target: Target) -> Watched:
        """Begin to keep what visits to a server say, or go on with it."""
        gap = max(5, 3 * target.engine.period_seconds)
        with self._lock:
            before = self._unwatched.pop(target.key, None)
            windows = EngineWindows(longest_gap_seconds=gap, state=before.state() if before else None)
            watched = Watched(target, windows, is_saved=windows.counted(target.key) is not None)
            self._watched.append(watched)
        return watched

    def asking(self, watched: Watched) -> Asking:
        """Who visits a server, how often, and what is done with visits and at their end."""
        target = watched.target
        runner = ThreadRunner(partial(EngineTarget, target.engine, watched.windows.counted(target.key)))
        return Asking(
            Guard(target.collector, runner, deadline_seconds=DEADLINE_SECONDS),
            target.engine.period_seconds,
            partial(self.take, watched),
            partial(self.end, watched),
            is_visited_at_stop=True,
        )

    def take(self, watched: Watched, visit: guard.Visit[EngineReading], second: int | None = None) -> None:
        """Take a visit. A server that does not answer shows nothing: what it showed before is no longer known."""
        second = int(time.time()) if second is None else second
        with self._lock:
            if watched not in self._watched:
                return  # its windows are closed: nobody would take the rows of more
            self._pending.add(watched.take(visit.reading.visit if visit.reading else None, second), second)

    def leave(self, watched: Watched) -> None:
        """Show no more of a server that is gone. Its last visit may be under way: `end` follows when that is over."""
        with self._lock:
            watched.is_left = True

    def end(self, watched: Watched, second: int | None = None) -> None:
        """Close the windows of a server that is visited no more. What was counted of one that is not gone is still of
        use to the next process. May be called twice.
        """
        second = int(time.time()) if second is None else second
        with self._lock:
            if watched in self._watched:
                self._end(watched, second)

    def close(self, second: int) -> None:
        """As `end`, for all servers that are left when the agent stops."""
        with self._lock:
            for watched in list(self._watched):
                self._end(watched, second)

    def close_unwatched(self, *, but_pods: bool = False, second: int | None = None) -> None:
        """Close the windows that an earlier process left of servers that are not visited now, and forget those.

        Pods are only found after a while: `but_pods` leaves theirs as they are.
        """
        second = int(time.time()) if second is None else second
        with self._lock:
            for key, windows in list(self._unwatched.items()):
                if not (but_pods and key.startswith(POD)):
                    self._pending.add(windows.close(second), second)
                    self._refused.update(windows.rejected)
                    del self._unwatched[key]

    def is_due(self, second: int) -> bool:
        """Whether `taken` should be called although no device has a window with which rows could go.

        Rows have waited, or a server was counted of which no state is kept yet.
        """
        with self._lock:
            has_news = any(not one.is_saved and one.windows.counted(one.target.key) for one in self._watched)
            return bool(self._stopped) or has_news or self._pending.have_waited(second)

    def taken(self) -> tuple[dict[str, tuple[Row, ...]], dict[str, Any]]:
        """The rows of windows that are over, taken out, and the states that follow from them, by key.

        Both must be kept, or neither: a process that goes on from the states adds exactly what is not in rows.
        """
        with self._lock:
            watched = ((f"{_LEFT}{one.target.key}" if one.is_left else one.target.key, one) for one in self._watched)
            of_watched = [(key, one.windows) for key, one in watched]
            states, left_out = states_of((*of_watched, *self._unwatched.items(), *self._stopped.items()))
            self._refused["state_too_large"] += left_out
            for one in self._watched:
                one.is_saved = one.windows.counted(one.target.key) is not None
            return self._pending.take(), states

    def measurements(self) -> Iterator[Measurement]:
        """The series of all servers that answer."""
        with self._lock:
            watched = [one for one in self._watched if not one.is_left]
            shown = [(one.shown, one.target.pod) for one in watched]
            refused = {one.target.collector: dict(one.windows.rejected) for one in watched}
            refused[COLLECTOR] = self._refused + Counter(too_many_engine_rows=self._pending.refused)
        for visit, pod in shown:
            if isinstance(visit, GatewayVisit):
                yield from measured_gateway(visit.totals, pod)
            elif visit is not None:
                yield from measured_visit(visit)
        for part, reasons in refused.items():
            for reason, count in sorted(reasons.items()):
                yield Measurement(
                    by_name("gputally_collector_rejected_events_total"), (self._node, part, reason), count
                )

    def _end(self, watched: Watched, second: int) -> None:
        self._watched.remove(watched)
        self._pending.add(watched.windows.close(second), second)
        if not watched.is_left:
            self._stopped[watched.target.key] = watched.windows
