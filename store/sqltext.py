"""The few places where SQL text must be composed: names and literals, quoted by one pair of functions."""

from __future__ import annotations


def identifier(name: str) -> str:
    """Quote a column, table or catalog name."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a string for statements that take no parameters (ATTACH, COPY, SET)."""
    return "'" + text.replace("'", "''") + "'"
