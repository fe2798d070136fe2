"""The project's own rules for SQL files. Each message says what to do instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.tidy.files import in_package

if TYPE_CHECKING:
    from pathlib import PurePosixPath

# What a file says first, by its folder; elsewhere Purpose and Grain. All files end with what they read.
HEADS = {"checks": ("Check",), "identities": ("Identity", "Severity", "Purpose"), "inputs": ("Rule", "Kind")}
MONEY = r"\"?\w*(?:cost|amount|price|total)\"?"
FLOAT = r"(?:DOUBLE(?:\s+PRECISION)?|FLOAT[48]?|REAL)"
FLOAT_MONEY = re.compile(
    rf"(?<![\w:])(?P<column>{MONEY})\s+{FLOAT}\b"  # a column of a table
    rf"|(?:::\s*{FLOAT}|\bAS\s+{FLOAT}\s*\))\s*\)*\s+AS\s+(?P<alias>{MONEY})\b"  # a cast with its name
    rf"|\b(?P<cast>{MONEY})\s*::\s*{FLOAT}\b",  # a cast of money
    re.IGNORECASE,
)
STORED_TABLE = re.compile(r"\bCREATE\s+(?:OR\s+REPLACE\s+)?TABLE\b[^;]*", re.IGNORECASE)
STORED_HUGE = re.compile(
    r"[(,]\s*(?P<column>\"?\w+\"?)\s+U?HUGEINT\b"
    r"|(?:::\s*U?HUGEINT|\bAS\s+U?HUGEINT\s*\))\s*\)*\s+AS\s+(?P<alias>\"?\w+\"?)",
    re.IGNORECASE,
)


def code(text: str) -> str:
    """Return the SQL without its comments, line numbers kept."""
    without_blocks = re.sub(r"/\*.*?\*/", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL)
    return re.sub(r"--[^\n]*", "", without_blocks)


def header_missing(path: PurePosixPath, text: str) -> list[str]:
    """A SQL file says what it is for, what one row means and what it reads, and the runner checks it."""
    if not in_package(path):
        return []
    words = next((HEADS[folder] for folder in path.parts if folder in HEADS), ("Purpose", "Grain"))
    head = text[: re.search(r"^(?!--|\s*$)", text, re.MULTILINE).start()] if code(text).strip() else text
    return [
        f"{path}: add the line '-- {word}: ...' to the head of the file"
        for word in (*words, "Reads")
        if not re.search(rf"^-- {word}:\s*\S", head, re.MULTILINE)
    ]


def money_in_float(path: PurePosixPath, text: str) -> list[str]:
    """Sums of floats change with the thread count; money does not."""
    sql = code(text)
    return [
        f"{path}:{_line(sql, hit)}: {_name(hit)} is money in a float; use DECIMAL(38,12)"
        for hit in FLOAT_MONEY.finditer(sql)
    ]


def hugeint_stored(path: PurePosixPath, text: str) -> list[str]:
    """Parquet has no HUGEINT, so DuckDB writes it as DOUBLE and digits are lost in silence."""
    sql = code(text)
    return [
        f"{path}:{_line(sql, table, hit.start())}: {_name(hit)} would be stored as HUGEINT; "
        "cast it to BIGINT or DECIMAL(38,0) in the table"
        for table in STORED_TABLE.finditer(sql)
        for hit in STORED_HUGE.finditer(table[0])
    ]


def _name(hit: re.Match[str]) -> str:
    return next(name for name in hit.groupdict().values() if name)


def _line(sql: str, hit: re.Match[str], offset: int = 0) -> int:
    return sql.count("\n", 0, hit.start() + offset) + 1


RULES = (header_missing, money_in_float, hugeint_stored)
