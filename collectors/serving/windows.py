"""Add up what model servers say, visit by visit, into the windows that go to the lake.

    windows = EngineWindows()
    rows = windows.advance(second, "llm-a", visit)     # after each visit; the rows of windows that are over
    rows = windows.close(second)                       # when the agent stops
    state = windows.state()                            # after either; to be kept with the rows returned so far

What was added between two visits is spread over the time between them, and its parts add up exactly; observations of
histograms stand in the window of the visit that read them, whole. What stood (requests, cache) counts for the time
since the visit before, unless that is so long that nobody looked. Rows of the same window add up, so what a server
added while it could not be reached comes later, in rows of its own.

A state holds the open windows and the counters that they were made from, so a later process adds exactly what came
after: `EngineWindows(state=...)`, and for each server `EngineServer(..., saved=windows.counted(server))`. What was
added while no agent ran is spread over that time like any other; nobody looked, so none of it is observed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from math import floor, isfinite
from typing import TYPE_CHECKING, Any, Final

from collectors.rows.seconds import LONGEST_BRIDGE_SECONDS, Clock, parts, pieces
from collectors.serving.counters import Counted
from collectors.serving.open_window import Levels, OpenEngineWindow, counted
from collectors.serving.plain import amount, text, whole
from fleet.telemetry import TEXT_LIMIT, WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collectors.serving.collector import Visit
    from collectors.serving.open_window import Identity
    from collectors.serving.samples import EngineSample
    from fleet.telemetry import EngineHistogramRow, EngineWindowRow

_HOUR_SECONDS: Final = 3600
_OLDEST_SECONDS: Final = 40 * 86_400
"""The hub takes no window that is much older, and one such row would cost all that are sent with it."""
_STATE_VERSION: Final = 1
_MOST_CARRIED: Final = 256
"""Layouts of histograms are texts of strangers; more of them cost a fraction of a unit each."""
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
        if name not in self.carried and len(self.carried) >= _MOST_CARRIED:
            self.carried.clear()
        total = self.carried.get(name, 0.0) + amount
        self.carried[name] = total - floor(total)
        return floor(total)

    def state(self) -> dict[str, Any]:
        """All of it as plain values for JSON."""
        windows = [window.state() for window in self.windows.values()]
        return {"windows": windows, "carried": self.carried, "seen_second": self.seen_second}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> _Engine:
        """As `OpenEngineWindow.restored`."""
        windows = [OpenEngineWindow.restored(window) for window in state["windows"]]
        carried = {text(name): amount(value) for name, value in state["carried"].items()}
        return cls({window.start_second: window for window in windows}, carried, whole(state["seen_second"]))


@dataclass(slots=True)
class _Server:
    clock: Clock = field(default_factory=Clock)
    engines: dict[Identity, _Engine] = field(default_factory=dict)
    counted: Counted | None = None
    is_resumed: bool = False
    """No visit of this process has told what was added since those of the one before."""

    def state(self) -> dict[str, Any]:
        """All of it as plain values for JSON."""
        return {
            "clock": asdict(self.clock),
            "engines": [[list(identity), engine.state()] for identity, engine in self.engines.items()],
            "counters": self.counted.state() if self.counted else None,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> _Server:
        """As `OpenEngineWindow.restored`."""
        clock = {name: None if value is None else whole(value) for name, value in state["clock"].items()}
        engines = {_identity(*names): _Engine.restored(engine) for names, engine in state["engines"]}
        return cls(Clock(**clock), engines, Counted.restored(state["counters"]), is_resumed=True)


class EngineWindows:
    """The open windows of model servers."""

    def __init__(
        self,
        window_seconds: int = WINDOW_SECONDS,
        longest_gap_seconds: int = 45,
        state: Mapping[str, Any] | None = None,
        *,
        has_rebooted: bool = False,
    ) -> None:
        """Begin anew, or from a state; one that cannot be read is as none.

        Between two visits farther apart than the gap nobody looked: only counters bridge it. Where the machine has
        rebooted since the state was left, so have its servers: their counters are forgotten.
        """
        self._window_seconds = window_seconds
        self._longest_gap_seconds = longest_gap_seconds
        self._servers = _resumed(state)
        if has_rebooted:
            for server in self._servers.values():
                server.counted = None
        self.rejected: Counter[str] = Counter()
        """How much was not taken, by reason: `too_many_engines`, in rows of visits; `too_old`, in windows."""

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
        is_watched = second - since <= self._longest_gap_seconds and not known.is_resumed
        # A visit that tells nothing of counters leaves what they are known to be.
        known.counted, known.is_resumed = visit.counted or known.counted, False
        for sample in visit.step.samples if visit.step else ():
            identity = (sample.server, sample.engine, sample.model, sample.engine_index)
            if identity not in known.engines and len(known.engines) >= _MOST_ROWS:
                self.rejected["too_many_engines"] += 1
                continue
            engine = known.engines.setdefault(identity, _Engine())
            engine.seen_second = second
            self._step(engine, sample, since, second, is_watched=is_watched)
        return (*rows, *self._over(known, second))

    def close(self, second: int) -> tuple[EngineWindowRow | EngineHistogramRow, ...]:
        """Return all windows, as far as they go; a second that is behind a window, by a clock that was set, is no bar.

        Time since the last visit is not in them.
        """
        return tuple(row for known in self._servers.values() for row in self._all(known, second))

    def state(self) -> dict[str, Any]:
        """All that is open and what it was counted from, as plain values for JSON; rows that were returned are not."""
        return {"version": _STATE_VERSION, "servers": {name: server.state() for name, server in self._servers.items()}}

    def counted(self, server: str) -> Counted | None:
        """The counters of a server that the windows account for: what whoever visits it next is to go on from."""
        known = self._servers.get(server)
        return known.counted if known else None

    def _step(self, engine: _Engine, sample: EngineSample, since: int, until: int, *, is_watched: bool) -> None:
        for column, added in counted(sample):
            for start, part in self._parts(engine.whole(column, added), since, until):
                engine.at(start).add(column, part)
        last = engine.at(self._start(max(since, until - 1)))
        for signal, histogram in sample.histograms.items():
            total = engine.whole(f"{signal} {histogram.bounds}", float(histogram.sum) * 1_000_000)
            if histogram.count or total:
                last.count(signal, histogram, total)
        last.see(sample)
        if until - since <= _HOUR_SECONDS:
            self._watch(engine, sample, since, until, is_watched=is_watched)

    def _watch(self, engine: _Engine, sample: EngineSample, since: int, until: int, *, is_watched: bool) -> None:
        """Account for the time of a step, and for what stood in it if somebody looked."""
        levels = Levels.of(sample)
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
                    window = engine.windows.pop(start)
                    if start < second - _OLDEST_SECONDS:
                        self.rejected["too_old"] += 1
                    else:
                        yield from window.rows(identity)
            if not engine.windows and second - engine.seen_second > LONGEST_BRIDGE_SECONDS:
                del known.engines[identity]


def _resumed(state: Mapping[str, Any] | None) -> dict[str, _Server]:
    """The servers of a state. One that is damaged begins anew, and costs what it would have bridged."""
    found: dict[str, _Server] = {}
    servers = state.get("servers") if state and state.get("version") == _STATE_VERSION else None
    for name, server in servers.items() if isinstance(servers, dict) else ():
        try:
            found[name] = _Server.restored(server)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    return found


def _identity(server: str, engine: str, model: str | None, index: str | None) -> Identity:
    names = tuple(None if name is None else text(name)[:TEXT_LIMIT] for name in (model, index))
    return text(server)[:TEXT_LIMIT], text(engine)[:TEXT_LIMIT], names[0], names[1]
