"""From the series of a page to canonical rows: one per model and engine index.

In this order: copies are left out (the mapping's `dedupe`), what belongs to one row is added up, and a series that
does not name its model or index goes to the only one there is, or else to a row of its own. A ratio that is none is
refused, never bent into range.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from collectors.samples import Rejected
from collectors.serving.doubts import complete, doubt_gauges
from collectors.serving.labels import text
from collectors.serving.leaves import leaves_of, take_out_passed_on
from collectors.serving.mapping import parsed_version
from collectors.serving.places import Places
from collectors.serving.samples import EngineSample, Histogram, ServingReading
from collectors.serving.values import Values, names_of_newest, state_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collectors.samples import Flag
    from collectors.serving.deltas import Deltas
    from collectors.serving.labels import Key, Point
    from collectors.serving.mapping import EngineMapping, Signal, Source
    from collectors.serving.page import Observed
    from collectors.serving.places import Place
    from collectors.serving.samples import Role
    from collectors.serving.values import Use

ROW_LIMIT: Final = 1_000
_COUNTING: Final = frozenset({"counter", "counters"})
_AT_FINISH: Final = "generation_tokens"
_NEVER_COUNTED: Final = "requests_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server as its configuration names it. `model` and `role` are for pages that do not say."""

    server: str
    model: str | None = None
    role: Role | None = None
    version: str | None = None


@dataclass(slots=True)
class _Row:
    values: dict[str, Any] = field(default_factory=dict)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    flags: set[Flag] = field(default_factory=set)
    role: Role | None = None


def rows_of(mapping: EngineMapping, seen: Observed, target: Target, deltas: Deltas | None = None) -> ServingReading:
    """The rows of a page: counters as they stand, or with `deltas` what they added since the page before."""
    table = _Table(mapping, seen, target, deltas)
    for signal in mapping.signals:
        table.add(signal)
    return table.reading()


class _Table:
    """The rows of one page while they are filled."""

    def __init__(self, mapping: EngineMapping, seen: Observed, target: Target, deltas: Deltas | None) -> None:
        self._mapping, self._seen, self._target, self._deltas = mapping, seen, target, deltas
        self._refused = Counter(seen.refused)
        points = (*seen.points.values(), *seen.histograms.values(), *seen.refused_points)
        self._places = Places(mapping, target.model, points)
        self._values = Values(mapping, seen, self._places, deltas)
        self._leaves = leaves_of(mapping, self._places, points)
        self._rows: dict[Place, _Row] = {}
        self._beyond: set[Place] = set()
        self._passed_on: list[Place] = []
        for point in points:
            if (row := self._row(self._places.of(point))) and not row.role:
                row.role = mapping.roles.get(text(point.labels, mapping.role_labels) or "")
        self._flag((point.key for point in seen.refused_points), seen.refused_points, "rejected")
        if deltas:
            self._flag(deltas.resets, points, "reset")
            self._flag(deltas.unknown, points, "partial")

    def _row(self, place: Place) -> _Row | None:
        """The row of a place; None beyond what a page may hold: clients can make up names of models."""
        if place not in self._rows:
            if len(self._rows) >= ROW_LIMIT:
                self._beyond.add(place)
                return None
            self._rows[place] = _Row()
        return self._rows[place]

    def _flag(self, keys: Iterable[Key], points: Iterable[Point], flag: Flag) -> None:
        wanted = set(keys)
        for point in points:
            if point.key in wanted and (row := self._rows.get(self._places.of(point))):
                row.flags.add(flag)

    def add(self, signal: Signal) -> None:
        """Take a signal from the first of its sources that is on the page."""
        words: set[str] = set()
        version = parsed_version(self._target.version)
        for source in signal.sources:
            if source.word in words or not source.fits(version, self._seen.at_least):
                continue
            places = self._values.by_place(source, signal.kind)
            if not places:
                continue
            words.add(source.word)
            for place, points in places.items():
                if row := self._rows.get(place):
                    self._fill(row, place, signal, source, points)
            if signal.kind not in {"counters", "gauges"}:
                return

    def _fill(self, row: _Row, place: Place, signal: Signal, source: Source, points: list[Point]) -> None:
        use: Use = "step" if self._deltas and signal.kind in {*_COUNTING, "histogram"} else "now"
        value: Any = None
        if signal.kind == "histogram":
            if (histogram := self._values.histogram(source, place, use)) is not None:
                row.histograms[signal.name] = histogram
            return
        if signal.kind == "names":
            value = names_of_newest(source, points)
        elif signal.kind == "state":
            value = state_of(source, points)
        elif signal.kind in {"counters", "gauges"}:
            found = self._values.by_word(source, signal.kind, place, use)
            if signal.zero_is_unknown and not any(self._values.by_word(source, signal.kind, place, "now").values()):
                found = {}
            counted = {word: self._number(row, signal, number) for word, number in found.items()}
            value = (row.values.get(signal.name) or {}) | {w: n for w, n in counted.items() if n is not None} or None
        else:
            value = self._single(row, place, signal, source, use)
        row.values[signal.name] = value
        if signal.name == _AT_FINISH and value is not None:
            row.values["generation_counted"] = "at_finish" if source.at_finish else "live"
        if source.is_estimate and value is not None:
            row.flags.add("estimated")

    def _single(self, row: _Row, place: Place, signal: Signal, source: Source, use: Use) -> float | None:
        combine = signal.combine or ("max" if signal.kind == "ratio" else "sum")
        is_unknown_at_0 = signal.zero_is_unknown or (signal.name == _NEVER_COUNTED and self._shows_no_leaf)
        if is_unknown_at_0 and not self._values.total(source, signal.kind, place, "now", combine):
            return None
        value = self._values.total(source, signal.kind, place, use, combine)
        return None if value is None else self._number(row, signal, value)

    def _number(self, row: _Row, signal: Signal, value: float) -> float | None:
        if value < 0 or (signal.kind == "ratio" and value > 1):
            self._refused["range"] += 1
            row.flags.add("rejected")
            return None
        return value if signal.kind in {"ratio", "seconds"} or signal.name.endswith("_seconds") else round(value)

    @property
    def _shows_no_leaf(self) -> bool:
        return self._leaves is not None and not self._leaves

    def _leave_out_passed_on(self) -> None:
        """Requests of models that pass them on stand in the rows of those that compute."""
        for place, row in list(self._rows.items()):
            if self._leaves is None or place in self._leaves:
                continue
            if self._leaves:
                self._passed_on.append(place)
            if self._leaves and self._deltas:
                del self._rows[place]
            elif self._shows_no_leaf or take_out_passed_on(row.values):
                row.flags.add("partial")

    def reading(self) -> ServingReading:
        """The rows, in the order in which the page names their places, and what was refused."""
        if self._beyond:
            self._refused["too_many_rows"] += len(self._beyond)
        deltas = self._deltas
        if deltas and deltas.is_other_process:
            self._refused["older_process"] += 1
        self._leave_out_passed_on()
        samples = [self._sample(place, row) for place, row in self._rows.items() if row.values or row.histograms]
        for sample in samples:
            complete(sample)
        if deltas:
            doubt_gauges(samples)
        return ServingReading(
            samples=tuple(samples),
            rejected=tuple(Rejected(reason, count) for reason, count in sorted(self._refused.items())),
            required_missing=self._seen.required_missing,
            families_known=len(self._seen.names),
            series_deduped=self._values.copies,
            counter_resets=len(deltas.resets) if deltas else 0,
            new_series=len(deltas.unknown) if deltas else 0,
            passed_on=tuple(self._passed_on),
        )

    def _sample(self, place: Place, row: _Row) -> EngineSample:
        flags = row.flags
        if self._seen.required_missing or self._seen.is_cut:
            flags.add("partial")
        if self._deltas and self._deltas.is_other_process:
            flags.add("rejected")
        return EngineSample(
            engine=self._mapping.kind,
            server=self._target.server,
            model=place[0],
            engine_index=place[1],
            engine_version=self._target.version,
            role=self._target.role or row.role,
            counters="delta" if self._deltas else "total",
            ts_nanoseconds=self._seen.ts_nanoseconds,
            interval_seconds=self._deltas.seconds if self._deltas else None,
            histograms=row.histograms,
            quality=tuple(sorted(flags)),
            **row.values,
        )
