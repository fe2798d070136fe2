"""Add up what model servers say, visit by visit, into the windows that go to the lake.

    windows = EngineWindows()
    rows = windows.advance(second, "llm-a", visit)     # after each visit; the rows of windows that are over
    rows = windows.close(second)                       # when the agent stops

What was added between two visits is spread over the time between them, and its parts add up exactly; observations of
histograms stand in the window of the visit that read them, whole. What stood (requests, cache) counts for the time
since the visit before, unless that is so long that nobody looked. Rows of the same window add up, so what a server
added while it could not be reached comes later, in rows of its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import floor, isfinite
from typing import TYPE_CHECKING, Final

from collectors.rows.seconds import LONGEST_BRIDGE_SECONDS, Clock, parts, pieces
from collectors.serving.open_window import Levels, OpenEngineWindow, counted
from fleet.telemetry import WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.serving.collector import Visit
    from collectors.serving.open_window import Identity
    from collectors.serving.samples import EngineSample
    from fleet.telemetry import EngineHistogramRow, EngineWindowRow

_HOUR_SECONDS: Final = 3600
_MOST_ROWS: Final = 256
"""Models and engine indices of a server: clients can make up names, and each has rows in every window."""


@dataclass(slots=True)
class _Engine:
    """One model and engine index of a server."""

    windows: dict[int, OpenEngineWindow] = field(default_factory=dict)
    carried: dict[str, float] = field(default_factory=dict)
    """Fractions that are left of times and sums, so that rounding does not add up."""
    seen_second: int = 0

    def at(self, start: int) -> OpenEngineWindow:
        """The window that begins at a second."""
        if start not in self.windows:
            self.windows[start] = OpenEngineWindow(start)
        return self.windows[start]

    def whole(self, name: str, amount: float) -> int:
        """The whole part of an amount and of what was left before it."""
        if isinstance(amount, int):
            return amount
        if not isfinite(amount):
            return 0
        total = self.carried.get(name, 0.0) + amount
        self.carried[name] = total - floor(total)
        return floor(total)


@dataclass(slots=True)
class _Server:
    clock: Clock = field(default_factory=Clock)
    engines: dict[Identity, _Engine] = field(default_factory=dict)


class EngineWindows:
    """The open windows of model servers."""

    def __init__(self, window_seconds: int = WINDOW_SECONDS, longest_gap_seconds: int = 45) -> None:
        """Nothing is seen yet. Between two visits farther apart than the gap nobody looked: only counters bridge it."""
        self._window_seconds = window_seconds
        self._longest_gap_seconds = longest_gap_seconds
        self._servers: dict[str, _Server] = {}
        self.rejected: Counter[str] = Counter()
        """How much was not taken, by reason: `too_many_engines`, in rows of visits."""

    def advance(
        self, second: int, server: str, visit: Visit | None
    ) -> tuple[EngineWindowRow | EngineHistogramRow, ...]:
        """Take a visit that ended in a second, None for one that yielded nothing; return rows of windows that are over.

        The server is who the windows are kept for; rows bear the names of the samples.
        """
        known = self._servers.setdefault(server, _Server())
        if visit is None:
            return tuple(self._over(known, second - self._longest_gap_seconds))
        since = known.clock.newest
        rows: list[EngineWindowRow | EngineHistogramRow] = []
        if known.clock.has_returned(second):
            # What was covered while the clock was ahead is done: time may come by there once more.
            rows, since = self._all(known, second), None
        if since is None or not since < second <= since + LONGEST_BRIDGE_SECONDS:
            # There is no time to spread over: a first visit, two in one second, a clock that was set.
            since = second
        for sample in visit.step.samples if visit.step else ():
            identity = (sample.server, sample.engine, sample.model, sample.engine_index)
            if identity not in known.engines and len(known.engines) >= _MOST_ROWS:
                self.rejected["too_many_engines"] += 1
                continue
            engine = known.engines.setdefault(identity, _Engine())
            engine.seen_second = second
            self._step(engine, sample, since, second)
        return (*rows, *self._over(known, second))

    def close(self, second: int) -> tuple[EngineWindowRow | EngineHistogramRow, ...]:
        """Return all windows, as far as they go; a second that is behind a window, by a clock that was set, is no bar.

        Time since the last visit is not in them.
        """
        return tuple(row for known in self._servers.values() for row in self._all(known, second))

    def _step(self, engine: _Engine, sample: EngineSample, since: int, until: int) -> None:
        for column, amount in counted(sample):
            for start, part in self._parts(engine.whole(column, amount), since, until):
                engine.at(start).add(column, part)
        last = engine.at(self._start(max(since, until - 1)))
        for signal, histogram in sample.histograms.items():
            total = engine.whole(f"{signal} {histogram.bounds}", float(histogram.sum) * 1_000_000)
            if histogram.count or total:
                last.count(signal, histogram, total)
        last.see(sample)
        if until - since <= _HOUR_SECONDS:
            self._watch(engine, sample, since, until)

    def _watch(self, engine: _Engine, sample: EngineSample, since: int, until: int) -> None:
        """Account for the time of a step, and for what stood in it if somebody looked."""
        levels, is_watched = Levels.of(sample), until - since <= self._longest_gap_seconds
        used = dict(self._parts(round((levels.kv_millionths or 0) * (until - since) / 1000), since, until))
        for start, begin, end in pieces(since, until, self._window_seconds):
            window, interval_ms = engine.at(start), (end - begin) * 1000
            window.window_ms += interval_ms
            if is_watched:
                window.observe(levels, interval_ms, None if levels.kv_millionths is None else used[start])

    def _parts(self, amount: int, since: int, until: int) -> Iterator[tuple[int, int]]:
        """An amount by windows. That of a long silence goes by hours, as the books do, to bound the rows."""
        if until <= since:
            yield self._start(until), amount
            return
        is_long = until - since > _HOUR_SECONDS
        cut_seconds = max(_HOUR_SECONDS, self._window_seconds) if is_long else self._window_seconds
        for start, part in parts(amount, since, until, cut_seconds):
            yield self._start(max(start, since)), part

    def _start(self, second: int) -> int:
        return second - second % self._window_seconds

    def _all(self, known: _Server, second: int) -> list[EngineWindowRow | EngineHistogramRow]:
        last = max((start for engine in known.engines.values() for start in engine.windows), default=second)
        return list(self._over(known, max(second, last) + self._window_seconds))

    def _over(self, known: _Server, second: int) -> Iterator[EngineWindowRow | EngineHistogramRow]:
        """Take out and yield the windows that ended by a second; forget engines that are not named for a day."""
        for identity, engine in list(known.engines.items()):
            for start in sorted(engine.windows):
                if start + self._window_seconds <= second:
                    yield from engine.windows.pop(start).rows(identity)
            if not engine.windows and second - engine.seen_second > LONGEST_BRIDGE_SECONDS:
                del known.engines[identity]
