"""What a page shows, as its address says: the query parameters, read and written in one place.

Addresses come from strangers. What cannot be read counts as not given and is mentioned; whether a readable name exists,
and may be seen, is decided against the scope's own lists.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import date
from typing import TYPE_CHECKING

from fleet.money import minor_unit_digits
from fleet.period import month

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME_LIMIT = 200
LOST_WITH = {"period": ("day", "category"), "currency": ("day", "category"), "team": ("day", "category")}
"""What else is forgotten when a part changes: a day belongs to its month, a category to its team."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The parts of an address; None where it says nothing."""

    period: str | None = None
    currency: str | None = None
    team: str | None = None
    pool: str | None = None
    server: str | None = None
    category: str | None = None
    day: date | None = None

    def params(self) -> dict[str, str]:
        """The query parameters that lead back to this selection."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: str(value) for name, value in values.items() if value is not None}

    def moved(self, name: str, value: str | date | None) -> Selection:
        """The selection with one part changed, and without what made sense only for the old one."""
        lost: dict[str, None] = dict.fromkeys(LOST_WITH.get(name, ()))
        return replace(self, **{**lost, name: value})  # type: ignore[arg-type]  # names are those of the fields


def parse(params: Mapping[str, str]) -> tuple[Selection, tuple[str, ...]]:
    """The selection in query parameters, and the names of those that could not be read."""
    found: dict[str, str | date] = {}
    junk: list[str] = []
    for part in fields(Selection):
        text = params.get(part.name)
        if text is None:
            continue
        value = _value(part.name, text)
        if value is None:
            junk.append(part.name)
        else:
            found[part.name] = value
    return Selection(**found), tuple(junk)  # type: ignore[arg-type]  # each part was read as its own type


def choose(asked: str | None, options: Sequence[str]) -> tuple[str | None, bool]:
    """The option asked for, else the first; and whether something else was asked for."""
    if asked in options:
        return asked, True
    return (options[0] if options else None), asked is None


def _value(name: str, text: str) -> str | date | None:
    try:
        if name == "day":
            return date.fromisoformat(text) if len(text) == 10 else None
        if name == "period":
            month(text)
        elif name == "currency":
            minor_unit_digits(text)
    except ValueError:
        return None
    return text if 0 < len(text) <= NAME_LIMIT and text.isprintable() else None
