"""Find the series of an engine on a metric page: which are known, what they say, and when they began.

A value that is not finite or negative is refused and counted; nothing that is mapped may be either. Histograms are
put together from their series; one whose buckets run backwards keeps its sum and count only.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from collectors.exposition import Page, PageError
from collectors.serving.labels import Key, Point
from collectors.serving.mapping import EngineMapping, Source, parsed_version, plain_name
from collectors.serving.samples import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collectors.exposition import Sample, Series
    from collectors.serving.mapping import Version

_START: Final = "process_start_time_seconds"
_CREATED: Final = "_created"
_DECLARED: Final = re.compile(r"^# TYPE ([\w:]{1,200}) ", re.ASCII | re.MULTILINE)
_INFINITE: Final = float("inf")
SERIES_LIMIT: Final = 50_000
"""Of the names that an engine or gateway is known by; labels that clients fill make any number, of 1-2 KB each."""
_LARGEST: Final = 2.0**63
_LARGEST_OF: Final[Mapping[str, float]] = MappingProxyType({"estimated_flops": 2.0**90})
"""Beyond it a value is none. Operations of a device pass the limit of all others within hours."""


@dataclass(slots=True)
class Observed:
    """What a page says about an engine, series by series."""

    source: str
    ts_nanoseconds: int | None
    points: dict[Key, Point] = field(default_factory=dict)
    histograms: dict[Key, Point] = field(default_factory=dict)
    created: dict[Key, float] = field(default_factory=dict)
    """When a series began (seconds), by its name without a suffix and its labels, where the page says so."""
    started: float | None = None
    """When the process began (seconds); pages of several processes do not tell."""
    names: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    refused_points: list[Point] = field(default_factory=list)
    required_missing: tuple[str, ...] = ()
    at_least: Version | None = None
    """The lowest version that the names on the page allow."""

    @property
    def is_cut(self) -> bool:
        """Whether the page holds more than was read of it."""
        return bool(self.refused["too_many_series"] or self.refused["too_many_lines"])

    def began(self, key: Key) -> float | None:
        """When a series began, if the page says so."""
        return self.created.get((_base(key[0]), key[1]), self.started)


@dataclass(slots=True)
class _Parts:
    labels: Mapping[str, str]
    buckets: dict[float, float] = field(default_factory=dict)
    sum: float | None = None
    count: float | None = None


class PageReader:
    """Reads pages of one engine; it remembers series, so the second page costs less."""

    def __init__(self, mapping: EngineMapping) -> None:
        self.mapping = mapping
        self._values, self._histograms = names_of(mapping)
        self._created = {_base(name) + _CREATED for name in self._values} | {n + _CREATED for n in self._histograms}
        self._uses: dict[Series, tuple[str, Key] | None] = {}
        self._required = {name: _spellings(mapping, name) for name in mapping.required}
        self._largest = {
            spelling: largest for name, largest in _LARGEST_OF.items() for spelling in _spellings(mapping, name)
        }
        self._markers = [(plain_name(name), parsed_version(since)) for name, since in mapping.markers]

    def observe(self, page: Page, text: str = "") -> Observed:
        """Return what a page says. PageError if it has none of the signals that such an engine always has.

        A server that nobody has called yet may only declare them: the `text` of the page tells, and it has no rows.
        """
        before, self._uses = self._uses, {}
        dated = next((s.timestamp_ms for s in page.samples if s.timestamp_ms is not None), None)
        seen = Observed(page.source, dated * 1_000_000 if page.read_at_ns is None and dated else page.read_at_ns)
        seen.refused.update(page.rejected)
        parts: dict[Key, _Parts] = {}
        for sample in page.samples:
            use = before[sample.series] if sample.series in before else self._use(sample.series)
            self._uses[sample.series] = use
            if use is not None:
                self._take(seen, parts, use, sample)
        for key, found in parts.items():
            _put_together(seen, key, found)
        present = seen.names
        seen.required_missing = tuple(n for n, spellings in self._required.items() if not spellings & present)
        if len(seen.required_missing) == len(self._required) and not self._declares(text):
            raise PageError(f"{page.source}: holds metrics, but none that every {self.mapping.kind} server has")
        seen.at_least = max((since for name, since in self._markers if since and name in present), default=None)
        return seen

    def _declares(self, text: str) -> bool:
        declared = {plain_name(name) for name in _DECLARED.findall(text)}
        return any(name in declared or _base(name) in declared for names in self._required.values() for name in names)

    def knows(self, spelling: str) -> bool:
        """Whether series of a name say anything about such an engine; whoever parses its page may leave out others."""
        name = plain_name(spelling)
        return name in self._values or name in self._created or name == _START or bool(self._histogram_of(name))

    def _use(self, series: Series) -> tuple[str, Key] | None:
        """The plain name and key of a series that is known in some way."""
        name = plain_name(series.name)
        return (name, (name, frozenset(series.labels.items()))) if self.knows(series.name) else None

    def _histogram_of(self, name: str) -> tuple[str, str] | None:
        base, _, suffix = name.rpartition("_")
        return (base, suffix) if suffix in {"bucket", "sum", "count"} and base in self._histograms else None

    def _take(self, seen: Observed, parts: dict[Key, _Parts], use: tuple[str, Key], sample: Sample) -> None:
        name, key = use
        labels, value = sample.series.labels, sample.value
        if name == _START:
            seen.started = max(value, seen.started or 0) if math.isfinite(value) else seen.started
            return
        if name in self._created:
            if math.isfinite(value):
                seen.created[name.removesuffix(_CREATED), key[1]] = value
            return
        seen.names.add(name)
        reason = _refusal(value, self._largest.get(name, _LARGEST))
        if reason:
            seen.refused[reason] += 1
            seen.refused_points.append(Point(key, labels, value))
            return
        if name in self._values:
            if key in seen.points:
                seen.refused["duplicate_series"] += 1
            else:
                seen.points[key] = Point(key, labels, value)
        if part := self._histogram_of(name):
            seen.names.add(part[0])
            _gather(seen, parts, part, sample)


def names_of(mapping: EngineMapping) -> tuple[set[str], set[str]]:
    """The plain names of the series of a mapping: single values, and histograms without their suffix."""
    values: set[str] = set()
    histograms: set[str] = set()
    for kind, source in _sources(mapping):
        (histograms if kind == "histogram" else values).add(plain_name(source.name))
    return values, histograms


def counter_names(mapping: EngineMapping) -> set[str]:
    """The plain names of the series of a mapping that only grow."""
    taken: set[str] = set()
    for signal in mapping.signals:
        if signal.kind in {"counter", "counters"}:
            for source in signal.sources:
                taken |= {plain_name(part.name) for part in (source, *source.plus, *source.minus)}
    return taken


def _sources(mapping: EngineMapping) -> Iterator[tuple[str, Source]]:
    for signal in mapping.signals:
        for source in signal.sources:
            for part in source.parts():
                yield signal.kind, part


def _spellings(mapping: EngineMapping, name: str) -> set[str]:
    return {plain_name(source.name) for signal in mapping.signals if signal.name == name for source in signal.sources}


def _base(name: str) -> str:
    for suffix in ("_total", "_sum", "_count"):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def _refusal(value: float, largest: float) -> str | None:
    if not math.isfinite(value):
        return "not_finite"
    return None if 0 <= value < largest else "range"


def _gather(seen: Observed, parts: dict[Key, _Parts], part: tuple[str, str], sample: Sample) -> None:
    base, suffix = part
    labels = {name: value for name, value in sample.series.labels.items() if name != "le"}
    found = parts.setdefault((base, frozenset(labels.items())), _Parts(labels))
    if suffix == "sum":
        found.sum = sample.value if found.sum is None else found.sum
    elif suffix == "count":
        found.count = sample.value if found.count is None else found.count
    else:
        try:
            bound = float(sample.series.labels.get("le", ""))
        except ValueError:
            seen.refused["bad_labels"] += 1
            return
        found.buckets.setdefault(bound, sample.value)


def _put_together(seen: Observed, key: Key, found: _Parts) -> None:
    count = found.buckets.get(_INFINITE) if found.count is None else found.count
    if found.sum is None or count is None:
        seen.refused["incomplete_histogram"] += 1
        return
    bounds = tuple(sorted(bound for bound in found.buckets if math.isfinite(bound)))
    totals = [*(found.buckets[bound] for bound in bounds), count]
    counts = tuple(round(now - before) for before, now in zip([0.0, *totals], totals, strict=False))
    if bounds and min(counts) < 0:
        seen.refused["incomplete_histogram"] += 1
        bounds = ()
    histogram = Histogram(bounds, counts if bounds else (), found.sum, round(count))
    seen.histograms[key] = Point(key, found.labels, count, histogram)
