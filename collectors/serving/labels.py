"""What labels of a page say: short texts of strangers, and copies of one thing under several of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from collectors.serving.mapping import Dedupe
    from collectors.serving.samples import Histogram

# How Python and TensorRT-LLM spell that there is nothing.
_NOTHING: Final = ("", "None", "undefined")

Key: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
"""A series over time: its name in the plain spelling, and all its labels."""


class Point(NamedTuple):
    """A series of a page with its value; `histogram` is set for one of those."""

    key: Key
    labels: Mapping[str, str]
    value: float
    histogram: Histogram | None = None


def text(labels: Mapping[str, str], names: Iterable[str]) -> str | None:
    """The first of some labels that says something. "None" is how Python spells that there is nothing."""
    for name in names:
        if (value := labels.get(name, "")) not in _NOTHING:
            return value[:TEXT_LIMIT]
    return None


def number(value: str | None) -> float | None:
    """The whole number that a label holds, never negative; None if it holds none."""
    if value is None or not value.isascii() or not value.isdecimal() or len(value) > 18:
        return None
    return float(value)


def without_copies(
    points: Sequence[Point], rules: Iterable[Dedupe], dead: Collection[tuple[str, str]], *, is_counter: bool
) -> list[Point]:
    """The points of one series name without those that show again what another shows.

    `dead` are label values of processes that are gone and whose gauges stand still.
    """
    kept = list(points)
    for rule in rules:
        if len(kept) < 2 or not any(rule.label in point.labels for point in kept):
            continue
        if rule.keep == "max" and is_counter:
            continue
        groups: dict[frozenset[tuple[str, str]], list[Point]] = {}
        for point in kept:
            rest = frozenset(item for item in point.labels.items() if item[0] != rule.label)
            groups.setdefault(rest, []).append(point)
        kept = [point for group in groups.values() for point in _best(group, rule, dead)]
    return kept


def _best(group: list[Point], rule: Dedupe, dead: Collection[tuple[str, str]]) -> list[Point]:
    if len(group) == 1:
        return group
    if rule.keep == "max":
        alive = [point for point in group if (rule.label, point.labels.get(rule.label, "")) not in dead]
        return [max(alive or group, key=lambda point: point.value)]
    if rule.keep == "empty":
        total = [point for point in group if point.labels.get(rule.label, "") == ""]
        return total or group
    return [min(group, key=lambda point: _rank(point.labels.get(rule.label)))]


def _rank(value: str | None) -> tuple[float, str]:
    found = number(value)
    return (float("inf") if found is None else found), value or ""
