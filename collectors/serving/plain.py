"""Values of a state that an earlier process left, each held to what it must be: else ValueError or TypeError."""

from __future__ import annotations

import math

from collectors.serving.samples import Histogram


def text(value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError
    return value


def whole(value: object) -> int:
    """A whole number that is not negative."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    if value < 0:
        raise ValueError
    return value


def number(value: object) -> float:
    """A finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError
    if not math.isfinite(value):
        raise ValueError
    return float(value)


def amount(value: object) -> float:
    """A finite number that is not negative."""
    if (found := number(value)) < 0:
        raise ValueError
    return found


def histogram(total: object, count: object, bounds: list[object], counts: list[object]) -> Histogram:
    """A histogram; without bounds only its sum and count are known."""
    if bounds and len(counts) != len(bounds) + 1:
        raise ValueError
    return Histogram(
        tuple(map(number, bounds)), tuple(map(whole, counts)) if bounds else (), number(total), whole(count)
    )
