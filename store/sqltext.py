"""The few places where SQL text must be composed: names and literals, quoted by one pair of functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def identifier(name: str) -> str:
    """Quote a column, table or catalog name."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a string for statements that take no parameters (ATTACH, COPY, SET)."""
    return "'" + text.replace("'", "''") + "'"


def only_file(path: Path) -> str:
    """SQL literal of exactly this file: DuckDB takes `*`, `?` and `[` for patterns, and `~` for the home folder."""
    return literal(re.sub(r"[*?[]", r"[\g<0>]", str(path.absolute())))
