"""The values of a source in one row: without copies, in base units, as they stand or as a step added them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from collectors.serving.labels import Point, number, without_copies
from collectors.serving.mapping import Combine, EngineMapping, Source, plain_name
from collectors.serving.samples import Histogram, merged

if TYPE_CHECKING:
    from collectors.serving.deltas import Deltas
    from collectors.serving.page import Observed
    from collectors.serving.places import Place, Places

Use: TypeAlias = Literal["now", "step"]
WORD_LIMIT: Final = 32
"""Words of one signal; the rest are added up as `other`, so that sums stay right."""
_WORD_LENGTH: Final = 64
_NAME_LIMIT: Final = 64
_NAME_LENGTH: Final = 256


class Values:
    """The series of one page by what a mapping asks of them."""

    def __init__(self, mapping: EngineMapping, seen: Observed, places: Places, deltas: Deltas | None) -> None:
        self._mapping = mapping
        self._places = places
        self._deltas = deltas
        self._dead = deltas.dead if deltas else frozenset()
        self._single: dict[str, list[Point]] = {}
        self._histograms: dict[str, list[Point]] = {}
        for point in seen.points.values():
            self._single.setdefault(point.key[0], []).append(point)
        for point in seen.histograms.values():
            self._histograms.setdefault(point.key[0], []).append(point)
        self._kept: dict[tuple[str, str], list[Point]] = {}
        # By the identity of a source: mappings live as long as the program.
        self._by_place: dict[tuple[int, str], dict[Place, list[Point]]] = {}
        self.copies = 0

    def by_place(self, source: Source, kind: str) -> dict[Place, list[Point]]:
        """The series of a source, without copies, by their place; empty if the page has none.

        A place that only has what is added to a source has an empty list.
        """
        slot = (id(source), kind)
        if slot not in self._by_place:
            found: dict[Place, list[Point]] = {}
            for point in self._points(plain_name(source.name), kind):
                if _is_meant(source, kind, point):
                    found.setdefault(self._places.of(point), []).append(point)
            if found:
                for part in source.plus:
                    for place in self.by_place(part, kind):
                        found.setdefault(place, [])
            self._by_place[slot] = found
        return self._by_place[slot]

    def _points(self, name: str, kind: str) -> list[Point]:
        grows = "grows" if kind in {"counter", "counters", "histogram"} else "stands"
        slot = ("histogram" if kind == "histogram" else grows, name)
        if slot not in self._kept:
            points = (self._histograms if kind == "histogram" else self._single).get(name, [])
            self._kept[slot] = without_copies(points, self._mapping.dedupe, self._dead, is_counter=grows == "grows")
            self.copies += len(points) - len(self._kept[slot])
        return self._kept[slot]

    def total(self, source: Source, kind: str, place: Place, use: Use, combine: Combine) -> float | None:
        """The value of a source in a place, with all that belongs to it; None if it is not known."""
        points = self.by_place(source, kind).get(place)
        return None if points is None else self._whole(source, kind, points, place, use, combine)

    def by_word(self, source: Source, kind: str, place: Place, use: Use) -> dict[str, float]:
        """The values of a source in a place by the word of each."""
        groups: dict[str, list[Point]] = {}
        for point in self.by_place(source, kind).get(place, []):
            word = point.labels.get(source.by, "") if source.by else source.word
            word = source.words.get(word, "" if word == "None" else word)[:_WORD_LENGTH]
            if word not in groups and len(groups) >= WORD_LIMIT:
                word = "other"
            groups.setdefault(word, []).append(point)
        known = {word: self._whole(source, kind, points, place, use, "sum") for word, points in groups.items()}
        return {word: value for word, value in known.items() if value is not None}

    def histogram(self, source: Source, place: Place, use: Use) -> Histogram | None:
        """The histograms of a source in a place, added up."""
        whole: Histogram | None = None
        for point in self.by_place(source, "histogram").get(place, []):
            found = point.histogram
            if use == "step" and self._deltas:
                found = self._deltas.histograms.get(point.key)
            if found is None:
                return None
            whole = found if whole is None else merged(whole, found)
        if whole is None or source.scale == 1:
            return whole
        bounds = tuple(bound * source.scale for bound in whole.bounds)
        return Histogram(bounds, whole.counts, whole.sum * source.scale, whole.count)

    def _whole(
        self, source: Source, kind: str, points: list[Point], place: Place, use: Use, combine: Combine
    ) -> float | None:
        values = [self._value(point, source, use) for point in points]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        whole = max(known, default=0.0) if combine == "max" else sum(known)
        for part in source.plus:
            whole += self.total(part, kind, place, use, "sum") or 0
        for part in source.minus:
            whole -= self.total(part, kind, place, use, "sum") or 0
        for part in source.times:
            factor = self.total(part, "gauge", place, "now", "max")
            if factor is None:
                return None
            whole *= factor
        return whole

    def _value(self, point: Point, source: Source, use: Use) -> float | None:
        if source.label is not None:
            value = number(point.labels.get(source.label))
        elif use == "step" and self._deltas:
            value = self._deltas.values.get(point.key)
        else:
            value = point.value
        return value if value is None or source.scale == 1 else value * source.scale


def _is_meant(source: Source, kind: str, point: Point) -> bool:
    """Whether a series of the right name is one that a source means."""
    if source.label and kind not in {"names", "state"} and number(point.labels.get(source.label)) is None:
        return False
    return all(re.fullmatch(want, point.labels.get(label, "")) for label, want in source.where.items())


def names_of_newest(source: Source, points: list[Point]) -> tuple[str, ...]:
    """The names in the labels of the newest series: their values are times, and old ones stay on the page."""
    newest = max(points, key=lambda point: point.value)
    names: dict[str, None] = {}
    for label in (source.label, *source.more_labels):
        for name in newest.labels.get(label or "", "").split(","):
            if name.strip() and name.strip() != "None":
                names[name.strip()[:_NAME_LENGTH]] = None
    return tuple(names)[:_NAME_LIMIT]


def state_of(source: Source, points: list[Point]) -> str | None:
    """The word of the one series that is not 0."""
    on = [point for point in points if point.value > 0]
    return on[0].labels.get(source.label or "", "")[:_WORD_LENGTH] or None if len(on) == 1 else None
