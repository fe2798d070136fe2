"""What counters added between two pages, series by series and before any sum.

A series whose value fell began again: what it shows has been added since. That a process has a new start time says
the same of all its series, where a page tells it; pages of several processes do not. A series that was not there
before counts whole if it began within the step, and from here on if its beginning is not known: then it is marked.
So nothing is ever negative, and two servers behind one address are not added up by turns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from collectors.serving.counters import Counted
from collectors.serving.page import Observed, counter_names
from collectors.serving.samples import Histogram

if TYPE_CHECKING:
    from collectors.serving.labels import Key, Point
    from collectors.serving.mapping import EngineMapping

# Exporters that work their start time out of the time since boot are off by a second from page to page.
_SAME_START_SECONDS: Final = 2.0
_QUIET_STEPS: Final = 5
"""Steps without any change after which a process is taken for gone, if another one moves."""
_NANOSECONDS: Final = 1_000_000_000
_KEPT_SERIES: Final = 20_000
_T = TypeVar("_T")
_EMPTY: Final = Histogram((), (), 0.0, 0)


@dataclass(slots=True)
class Deltas:
    """What was added in a step. A counter that is not here is unknown in this step."""

    seconds: float | None
    values: dict[Key, float] = field(default_factory=dict)
    histograms: dict[Key, Histogram] = field(default_factory=dict)
    resets: set[Key] = field(default_factory=set)
    unknown: set[Key] = field(default_factory=set)
    """Series that are new and whose beginning is not known: what they show is not counted."""
    dead: frozenset[tuple[str, str]] = frozenset()
    """Labels of processes whose gauges stand still; they count only where no other has moved either."""
    is_other_process: bool = False
    """The page is of an older process than the one before, so nothing can be compared."""


class Steps:
    """Remembers the counters of one server and says what each page added, beside those that were `saved`."""

    def __init__(self, mapping: EngineMapping, saved: Counted | None = None) -> None:
        self._counters = counter_names(mapping)
        self._last: dict[Key, float] = dict(saved.values) if saved else {}
        self._last_histograms: dict[Key, Histogram] = dict(saved.histograms) if saved else {}
        self._before = Observed("", saved.ts_nanoseconds, started=saved.started) if saved else None
        self._is_resumed = saved is not None
        self._doubted: float | None = None
        self._alive = _Alive(tuple(rule.label for rule in mapping.dedupe if rule.keep == "max"))

    def advance(self, seen: Observed) -> Deltas | None:
        """Return what was added since the page before; None for the first."""
        before = self._before
        if before is not None and self._is_older(before, seen):
            return Deltas(_seconds(before, seen), is_other_process=True)
        deltas = None if before is None else self._deltas(before, seen)
        self._remember(seen)
        if deltas is not None:
            deltas.dead = self._alive.dead(seen, self._counters)
        return deltas

    def counted(self, of: str) -> Counted | None:
        """What the counters of a server stand at by now; None before its first page."""
        before = self._before
        if before is None:
            return None
        # These dictionaries are replaced, never changed.
        return Counted(of, before.ts_nanoseconds, before.started, self._last, self._last_histograms)

    def _is_older(self, before: Observed, seen: Observed) -> bool:
        """Whether a page is of an older process; said twice in a row it is believed (a clock that was set back)."""
        if before.started is None or seen.started is None or seen.started >= before.started - _SAME_START_SECONDS:
            self._doubted = None
            return False
        is_said_again = self._doubted is not None and abs(seen.started - self._doubted) <= _SAME_START_SECONDS
        self._doubted = None if is_said_again else seen.started
        return not is_said_again

    def _deltas(self, before: Observed, seen: Observed) -> Deltas:
        has_restarted = (
            before.started is not None
            and seen.started is not None
            and abs(seen.started - before.started) > _SAME_START_SECONDS
        )
        if has_restarted and self._is_resumed and not _started_within(before, seen):
            # Another process, which ran before anybody looked away: how much of it was counted is not known.
            has_restarted, self._last, self._last_histograms = False, {}, {}
        elif has_restarted:
            # What the new process does not show yet is 0 in it.
            self._last = dict.fromkeys(self._last, 0.0)
            self._last_histograms = dict.fromkeys(self._last_histograms, _EMPTY)
        deltas = Deltas(_seconds(before, seen))
        for key, point in seen.points.items():
            if key[0] in self._counters:
                self._value(before, seen, point, deltas, has_restarted=has_restarted)
        for point in seen.histograms.values():
            self._histogram(before, seen, point, deltas, has_restarted=has_restarted)
        return deltas

    def _value(self, before: Observed, seen: Observed, now: Point, deltas: Deltas, *, has_restarted: bool) -> None:
        key = now.key
        last = self._last.get(key)
        if last is None:
            is_whole = has_restarted or _began_within(before, seen, key)
            deltas.values[key] = now.value if is_whole else 0.0
            if not is_whole and now.value:
                deltas.unknown.add(key)
            return
        deltas.values[key] = now.value - last if now.value >= last else now.value
        if has_restarted or now.value < last:
            deltas.resets.add(key)

    def _histogram(self, before: Observed, seen: Observed, now: Point, deltas: Deltas, *, has_restarted: bool) -> None:
        key, histogram = now.key, now.histogram
        if histogram is None:
            return
        last = self._last_histograms.get(key)
        if last is None:
            is_whole = has_restarted or _began_within(before, seen, key)
            deltas.histograms[key] = histogram if is_whole else _nothing(histogram)
            if not is_whole and histogram.count:
                deltas.unknown.add(key)
            return
        has_fallen = histogram.count < last.count or histogram.sum < last.sum or _fell(last, histogram)
        if has_restarted or has_fallen:
            deltas.resets.add(key)
        deltas.histograms[key] = histogram if last is _EMPTY or has_fallen else _added(last, histogram)

    def _remember(self, seen: Observed) -> None:
        """Keep what is known; a counter that is away for a while bridges the gap when it is back."""
        counters = {key: point.value for key, point in seen.points.items() if key[0] in self._counters}
        whole = {key: point.histogram for key, point in seen.histograms.items() if point.histogram}
        self._last = _bounded(self._last, counters)
        self._last_histograms = _bounded(self._last_histograms, whole)
        self._before, self._is_resumed = seen, False


class _Alive:
    """Which processes of a server still move. Those that are gone leave their last gauges on the page."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self._labels = labels
        self._last: dict[Key, float] = {}
        self._quiet: dict[tuple[str, str], int] = {}

    def dead(self, seen: Observed, counters: set[str]) -> frozenset[tuple[str, str]]:
        """The processes that stood still for some steps; where all do, whoever asks takes all of them."""
        moved: dict[tuple[str, str], bool] = {}
        gauges: dict[Key, float] = {}
        for key, point in seen.points.items():
            for label in self._labels:
                if key[0] in counters or label not in point.labels:
                    continue
                process = (label, point.labels[label])
                gauges[key] = point.value
                moved[process] = moved.get(process, False) or self._last.get(key, point.value) != point.value
        self._quiet = {process: 0 if has else self._quiet.get(process, 0) + 1 for process, has in moved.items()}
        self._last = gauges
        return frozenset(process for process, steps in self._quiet.items() if steps >= _QUIET_STEPS)


def _began_within(before: Observed, seen: Observed, key: Key) -> bool:
    began = seen.began(key)
    return began is not None and before.ts_nanoseconds is not None and began * _NANOSECONDS > before.ts_nanoseconds


def _started_within(before: Observed, seen: Observed) -> bool:
    """Whether the process of a page began after the page before, as far as start times are exact."""
    if before.ts_nanoseconds is None or seen.started is None:
        return True
    return (seen.started + _SAME_START_SECONDS) * _NANOSECONDS > before.ts_nanoseconds


def _seconds(before: Observed, seen: Observed) -> float | None:
    if before.ts_nanoseconds is None or seen.ts_nanoseconds is None:
        return None
    nanoseconds = seen.ts_nanoseconds - before.ts_nanoseconds
    return nanoseconds / _NANOSECONDS if nanoseconds > 0 else None


def _bounded(last: dict[Key, _T], now: dict[Key, _T]) -> dict[Key, _T]:
    """What is on the page, and what was there before as long as there is room: labels of strangers pile up."""
    if len(last) + len(now) > _KEPT_SERIES:
        return now
    # What is on the page comes first: a state on disk has less room.
    return now | {key: value for key, value in last.items() if key not in now}


def _fell(before: Histogram, now: Histogram) -> bool:
    same = before.bounds == now.bounds and before.bounds
    return bool(same) and any(new < old for old, new in zip(before.counts, now.counts, strict=True))


def _added(before: Histogram, now: Histogram) -> Histogram:
    is_same = before.bounds == now.bounds
    return Histogram(
        bounds=now.bounds if is_same else (),
        counts=tuple(new - old for old, new in zip(before.counts, now.counts, strict=True)) if is_same else (),
        sum=now.sum - before.sum,
        count=now.count - before.count,
    )


def _nothing(histogram: Histogram) -> Histogram:
    return Histogram(histogram.bounds, (0,) * len(histogram.counts), 0.0, 0)
