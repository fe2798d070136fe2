"""Columns of a Parquet file that keep their own type until they are stored: no text is made of most numbers and times.

Money in a double is the decimal of its shortest text that reads back as the same double, 0.1 for 0.1. That text is made
only for the few doubles whose decimal does not follow from arithmetic.
"""

from __future__ import annotations

from typing import Final

from store.columns import Cell, Column, Kind, clock_checks, filled_check, minimum_check, money_is_rounded, money_of
from store.sqltext import identifier, literal

WHOLE: Final = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
)  # fmt: skip
NAIVE_TIMES: Final = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})
ZONED_TIME: Final = "TIMESTAMP WITH TIME ZONE"


def native_cell(column: Column, sql_type: str, zone: str | None) -> Cell | None:
    """A column whose DuckDB type in the file is `sql_type`; None where its text has to be judged."""
    value = identifier(column.name)
    match column.kind:
        case Kind.MONEY if sql_type == "DOUBLE":
            return _double(column, value)
        case Kind.MONEY if sql_type in WHOLE or sql_type.startswith("DECIMAL"):
            return _decimal(column, value)
        case Kind.COUNT | Kind.LARGE_COUNT if sql_type in WHOLE:
            count = f"TRY_CAST({value} AS {column.kind.sql_type})"
            return _cell(column, count, (f"{value} IS NOT NULL AND {count} IS NULL", "is not a whole number"))
        case Kind.TIME if sql_type in NAIVE_TIMES or sql_type == ZONED_TIME:
            return _time(column, value, zone, is_zoned=sql_type == ZONED_TIME)
        case _:
            return None


def _cell(column: Column, value: str, *checks: tuple[str, str], is_rounded: str | None = None) -> Cell:
    return Cell(value, (*filled_check(column), *checks, *minimum_check(column, identifier(column.name))), is_rounded)


def _decimal(column: Column, value: str) -> Cell:
    """Whole numbers and decimals. Other decimals than 12 are rounded half away from zero."""
    money = f"TRY_CAST({value} AS DECIMAL(38, 12))"
    # Where the rounded value does not fit beside the other, rounding has made it another.
    is_rounded = f"{money} IS NOT NULL AND coalesce(TRY({money} <> {value}), true)"
    return _cell(column, money, (f"{value} IS NOT NULL AND {money} IS NULL", "is too large"), is_rounded=is_rounded)


def _double(column: Column, value: str) -> Cell:
    """Doubles: the decimal d of the shortest text of a double v.

    Let p be v times 10^12 in doubles. d and v differ by at most half of the last binary digit, p and the exact product
    by another half, so that p is off by at most |p| * 2^-52 from d * 10^12. If p is nearer to a whole number than half
    less twice that, d rounds to this one. Above 1000, where n / 10^6 is v for a whole n of at most 15 digits, d is
    n / 10^6: no two decimals of 15 digits are the same double. Of the others the text is made.
    """
    text = f"CAST({value} AS VARCHAR)"
    scaled = f"({value} * 1e12)"
    is_near = f"abs({value}) < 1000 AND abs({scaled} - round({scaled})) + abs({scaled}) * 4.5e-16 < 0.5"
    is_short = f"abs({value}) < 1e9 AND round({value} * 1e6) / 1e6 = {value}"
    money = (
        f"CASE WHEN {is_near} THEN CAST(TRY_CAST({value} AS DECIMAL(18, 12)) AS DECIMAL(38, 12)) "
        f"WHEN {is_short} THEN CAST(TRY_CAST({value} AS DECIMAL(18, 6)) AS DECIMAL(38, 12)) ELSE {money_of(text)} END"
    )
    # Of decimals below 1000 those with 12 digits after the point have 15 in all.
    is_rounded = (
        f"CASE WHEN abs({value}) < 1000 THEN round({scaled}) / 1e12 <> {value} "
        f"WHEN {is_short} THEN false ELSE {money_is_rounded(text)} END"
    )
    return _cell(
        column,
        money,
        (f"{value} IS NOT NULL AND NOT isfinite({value})", "is not a plain decimal number"),
        (f"isfinite({value}) AND {money} IS NULL", "is too large"),
        is_rounded=is_rounded,
    )


def _time(column: Column, value: str, zone: str | None, *, is_zoned: bool) -> Cell:
    """Times in years of four digits; naive ones in the zone given, if the clocks there showed them once."""
    kind = "TIMESTAMPTZ" if is_zoned else "TIMESTAMP"
    time = value if is_zoned else f"CAST({value} AS TIMESTAMP)"
    # Up to the year 9999; `infinity` lies outside, too.
    is_year = f"{time} >= {kind} '0001-01-01 00:00:00' AND {time} < {kind} '10000-01-01 00:00:00'"
    checks = [(f"{value} IS NOT NULL AND NOT ({is_year})", "is not an RFC 3339 time")]
    if is_zoned:
        return _cell(column, f"CASE WHEN {is_year} THEN {time} END", *checks)
    if zone is None:
        no_zone = "has no time zone (end it with Z or an offset, or load with --time-zone)"
        return _cell(column, "CAST(NULL AS TIMESTAMPTZ)", *checks, (is_year, no_zone))
    checks += [(f"CASE WHEN {is_year} THEN {bad} ELSE false END", message) for bad, message in clock_checks(time, zone)]
    return _cell(column, f"CASE WHEN {is_year} THEN timezone({literal(zone)}, {time}) END", *checks)
