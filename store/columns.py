"""What a column of an input file may hold: its type, its SQL form, and the tests each cell must pass."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from store.sqltext import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

NUMBER = r"-?\d+(\.\d+)?([eE]-?\d+)?"
"""Plain decimals as FOCUS NumericFormat writes them: no thousands mark, no currency sign, no plus, no NaN."""
SHORT_NUMBER = r"-?\d{1,9}(\.\d{1,8})?"
"""Numbers that fit DECIMAL(18, 8) unchanged. DuckDB reads those from text 50 times faster than a 38-digit decimal."""
LONG_FRACTION = r"\.\d{13}|[eE]"
TIME = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?"
ZONE = r"(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)"
MAX_NAME = 256
MAX_TEXT = 65_536


class Kind(Enum):
    """Column types of input files."""

    NAME = "name"
    TEXT = "text"
    MONEY = "money"
    GPUS = "gpus"
    COUNT = "count"
    LARGE_COUNT = "large_count"
    TIME = "time"
    CURRENCY = "currency"
    MONTH = "month"

    @property
    def sql_type(self) -> str:
        """The DuckDB type of the staged column."""
        return _SQL_TYPES[self]

    @property
    def is_money(self) -> bool:
        """Whether the column holds money or another exact 12-decimal quantity."""
        return self is Kind.MONEY


_SQL_TYPES: Final = MappingProxyType(
    {
        Kind.NAME: "VARCHAR",
        Kind.TEXT: "VARCHAR",
        Kind.MONEY: "DECIMAL(38, 12)",
        Kind.GPUS: "DECIMAL(18, 6)",
        Kind.COUNT: "INTEGER",
        Kind.LARGE_COUNT: "BIGINT",
        Kind.TIME: "TIMESTAMPTZ",
        Kind.CURRENCY: "VARCHAR",
        Kind.MONTH: "VARCHAR",
    }
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a file: `name` in its header, `field` in the table."""

    name: str
    field: str
    kind: Kind
    required: bool = False
    """The header must have it."""
    filled: bool = False
    """Every row must have a value."""
    minimum: int | None = None
    """Smallest allowed value of a number."""


@dataclass(frozen=True, slots=True)
class FileSpec:
    """The columns of one kind of file, and how its cells are read."""

    kind: str
    table: str
    columns: tuple[Column, ...]
    one_of: tuple[str, ...] = ()
    """Exactly one of these columns must be filled in each row."""
    other_columns: tuple[str, ...] = ()
    """Known columns that are accepted and not kept."""
    custom_prefixes: tuple[str, ...] = ("\0",)
    """Unknown columns with these prefixes are accepted and not kept (FOCUS: x_). The default matches none."""
    null_texts: tuple[str, ...] = ("",)
    zone: str | None = None
    """Zone of times without one, where the format itself fixes it (FOCUS: UTC)."""

    def unique_fields(self) -> Sequence[Column]:
        """One column per table field: several header spellings (FOCUS versions) may feed the same field."""
        return tuple({column.field: column for column in self.columns}.values())


@dataclass(frozen=True, slots=True)
class Cell:
    """How one column of a landed file is read, in SQL: `value` is NULL for cells that one of the `checks` finds."""

    value: str
    checks: tuple[tuple[str, str], ...]
    """Predicate of a bad cell, and the message that completes "'value' ..."."""
    is_rounded: str | None = None
    """Predicate: the cell has more decimals than DECIMAL(38, 12) keeps."""


def text_cell(column: Column, zone: str | None) -> Cell:
    """A column that landed as text."""
    text = identifier(column.name)
    checks = [
        *filled_check(column),
        *((f"{text} IS NOT NULL AND ({bad})", message) for bad, message in _kind_checks(column.kind, text, zone)),
        *minimum_check(column, f"TRY_CAST({text} AS DECIMAL(38, 12))"),
    ]
    is_rounded = money_is_rounded(text) if column.kind.is_money else None
    return Cell(_typed(column.kind, text, zone), tuple(checks), is_rounded)


def filled_check(column: Column) -> Sequence[tuple[str, str]]:
    """The check of a column that each row fills."""
    return [(f"{identifier(column.name)} IS NULL", "must not be empty")] if column.filled else []


def minimum_check(column: Column, number: str) -> Sequence[tuple[str, str]]:
    """The check of a column with a smallest value, of which `number` is the SQL."""
    return [] if column.minimum is None else [(f"{number} < {column.minimum}", f"is below {column.minimum}")]


def _typed(kind: Kind, text: str, zone: str | None) -> str:
    """SQL expression that turns landed text into the typed value, or NULL where that is none."""
    if kind is Kind.TIME and zone:
        local = f"timezone({literal(zone)}, TRY_CAST({text} AS TIMESTAMP))"
        zoned = f"TRY_CAST({_with_seconds(text)} AS TIMESTAMPTZ)"
        return f"TRY(CASE WHEN {_has_zone(text)} THEN {zoned} ELSE {local} END)"
    if kind is Kind.TIME:
        return f"TRY_CAST({_with_seconds(text)} AS TIMESTAMPTZ)"
    if kind is Kind.MONEY:
        return money_of(text)
    return text if kind.sql_type == "VARCHAR" else f"TRY_CAST({text} AS {kind.sql_type})"


def money_of(text: str) -> str:
    """SQL: the decimal of a text, with 12 decimals, half away from zero; NULL where there is none."""
    short = f"regexp_full_match({text}, {literal(SHORT_NUMBER)})"
    fast = f"CAST(TRY_CAST({text} AS DECIMAL(18, 8)) AS DECIMAL(38, 12))"
    return f"CASE WHEN {short} THEN {fast} ELSE TRY_CAST({text} AS DECIMAL(38, 12)) END"


def money_is_rounded(text: str) -> str:
    """SQL predicate: the text of a number has more decimals than DECIMAL(38, 12) keeps."""
    # Numbers of 19 digits before the point do not fit beside 20 after it; such money has no fraction worth counting.
    differs = f"coalesce(TRY(TRY_CAST({text} AS DECIMAL(38, 20)) <> TRY_CAST({text} AS DECIMAL(38, 12))), false)"
    return f"CASE WHEN regexp_matches({text}, {literal(LONG_FRACTION)}) THEN {differs} ELSE false END"


def _kind_checks(kind: Kind, text: str, zone: str | None) -> list[tuple[str, str]]:
    match kind:
        case Kind.NAME:
            return [
                (_is_longer(text, MAX_NAME), f"is longer than {MAX_NAME} characters"),
                (
                    rf"regexp_matches({text}, '[\x00-\x1f\x7f]') OR trim({text}) <> {text} OR {text} = ''",
                    "is not a name: blanks at an end or control characters",
                ),
            ]
        case Kind.TEXT:
            return [(_is_longer(text, MAX_TEXT), f"is longer than {MAX_TEXT} characters")]
        case Kind.MONEY | Kind.GPUS:
            number, short = (f"regexp_full_match({text}, {literal(form)})" for form in (NUMBER, SHORT_NUMBER))
            cast = f"TRY_CAST({text} AS {kind.sql_type}) IS NOT NULL"
            fits = f"CASE WHEN {short} THEN true WHEN {number} THEN {cast} ELSE true END"
            return [(f"NOT {number}", "is not a plain decimal number"), (f"NOT {fits}", "is too large")]
        case Kind.COUNT | Kind.LARGE_COUNT:
            return [
                (
                    rf"NOT regexp_full_match({text}, '-?\d+(\.0+)?') OR TRY_CAST({text} AS {kind.sql_type}) IS NULL",
                    "is not a whole number",
                )
            ]
        case Kind.CURRENCY:
            return [(f"NOT regexp_full_match({text}, '[A-Z]{{3}}')", "is not an ISO 4217 currency code")]
        case Kind.MONTH:
            return [(rf"NOT regexp_full_match({text}, '\d{{4}}-(0[1-9]|1[0-2])')", "is not a month like 2026-05")]
        case Kind.TIME:
            return _time_checks(text, zone)


def _is_longer(text: str, limit: int) -> str:
    # The number of bytes is at hand; characters have to be counted.
    return f"CASE WHEN strlen({text}) > {limit} THEN length({text}) > {limit} ELSE false END"


def _has_zone(text: str) -> str:
    return f"regexp_full_match({text}, {literal(TIME + ZONE)})"


def _with_seconds(text: str) -> str:
    """SQL: a time with a zone, its seconds filled in. Some exports leave them out; DuckDB wants them before a zone."""
    return f"CASE WHEN {text}[17] = ':' THEN {text} ELSE {text}[:16] || ':00' || {text}[17:] END"


def _time_checks(text: str, zone: str | None) -> list[tuple[str, str]]:
    no_zone = f"regexp_full_match({text}, {literal(TIME)})"
    checks = [
        (f"NOT regexp_full_match({text}, {literal(TIME + ZONE + '?')})", "is not an RFC 3339 time"),
        (f"starts_with({text}, '0000')", "is not a time that exists"),
        (f"{_has_zone(text)} AND TRY_CAST({_with_seconds(text)} AS TIMESTAMPTZ) IS NULL", "is not a time that exists"),
    ]
    if zone is None:
        checks.append((no_zone, "has no time zone (end it with Z or an offset, or load with --time-zone)"))
        return checks
    local = f"TRY_CAST({text} AS TIMESTAMP)"
    checks.append((f"{no_zone} AND {local} IS NULL", "is not a time that exists"))
    return [*checks, *((f"{no_zone} AND ({bad})", message) for bad, message in clock_checks(local, zone))]


def clock_checks(local: str, zone: str) -> list[tuple[str, str]]:
    """Checks of local times, TIMESTAMP in SQL: that the clocks of the zone showed them, and only once."""
    if zone == "UTC":
        return []
    at = literal(zone)
    utc = f"timezone({at}, {local})"
    again = " OR ".join(
        f"timezone({at}, {utc} {sign} INTERVAL {minutes} MINUTE) = {local}" for sign in "+-" for minutes in (30, 60)
    )
    return [
        (f"timezone({at}, {utc}) <> {local}", f"does not exist in {zone} (clocks went forward)"),
        (again, f"happens twice in {zone} (clocks went back): give it an offset"),
    ]
