"""Every cell is judged as text, named by row and column, and kept exactly."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import InputError
from tests.store.staging import only, rows, staged

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb


def judged(con: duckdb.DuckDBPyConnection, path: Path, column: str, cell: str, **options: Any) -> str | None:
    """The message for one cell in row 3, None if it is accepted."""
    cell = '"' + cell.replace('"', '""') + '"'
    good = {"seen": "2026-05-01T00:00:00Z"}.get(column, "")
    text = f"id,{column}\n1,{good}\n2,{cell}\n" if column != "id" else f"id,note\n1,\n{cell},\n"
    try:
        staged(con, path, text, **options)
    except InputError as error:
        row, found_column, message = only(error.problems)
        assert (row, found_column) == (3, column)
        return message
    return None


GOOD = [
    ("id", "007", "007"),
    ("id", "a b", "a b"),
    ("id", "\u00fcn\u00efc\u00f6de \u540d", "\u00fcn\u00efc\u00f6de \u540d"),
    ("id", "=SUM(A1)", "=SUM(A1)"),
    ("id", "x" * 256, "x" * 256),
    ("note", " blanks stay ", " blanks stay "),
    ("note", 'two\nlines, "quoted"', 'two\nlines, "quoted"'),
    ("note", "null", "null"),
    ("cost", "0", Decimal(0)),
    ("cost", "-0", Decimal(0)),
    ("cost", "-12.5", Decimal("-12.5")),
    ("cost", "007.50", Decimal("7.5")),
    ("cost", "1e-7", Decimal("0.0000001")),
    ("cost", "1e25", Decimal(10**25)),
    ("cost", "1.5E3", Decimal(1500)),
    ("cost", "0.000000000001", Decimal("1e-12")),
    ("cost", "123456789.12345678", Decimal("123456789.12345678")),
    ("cost", "1234567890.123456789012", Decimal("1234567890.123456789012")),
    ("cost", "99999999999999999999999999.999999999999", Decimal("99999999999999999999999999.999999999999")),
    ("gpus", "0.333333", Decimal("0.333333")),
    ("gpus", "8", Decimal(8)),
    ("count", "8.0", 8),
    ("count", "0", 0),
    ("seen", "2026-05-01T00:00:00Z", datetime(2026, 5, 1, tzinfo=UTC)),
    ("seen", "2026-05-01 02:00:00+02:00", datetime(2026, 5, 1, tzinfo=UTC)),
    ("seen", "2026-05-01T02:00:00+0200", datetime(2026, 5, 1, tzinfo=UTC)),
    ("seen", "2026-04-30T19:30:00-04:30", datetime(2026, 5, 1, tzinfo=UTC)),
    ("seen", "2026-05-01T00:00Z", datetime(2026, 5, 1, tzinfo=UTC)),
    ("seen", "2026-05-01 00:00+00:00", datetime(2026, 5, 1, tzinfo=UTC)),
    ("seen", "2026-05-01T00:00:00.123456789Z", datetime(2026, 5, 1, 0, 0, 0, 123456, tzinfo=UTC)),
    ("seen", "9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ("currency", "USD", "USD"),
    ("month", "2026-05", "2026-05"),
]


@pytest.mark.parametrize(("column", "cell", "value"), GOOD, ids=[f"{c}-{v[:24]!r}" for c, v, _ in GOOD])
def test_a_good_cell_is_kept_exactly(
    con: duckdb.DuckDBPyConnection, path: Path, column: str, cell: str, value: object
) -> None:
    assert judged(con, path, column, cell) is None
    assert rows(con, f'"{column}"')[1] == (value,)


NUMBER, TIME, NAME = "is not a plain decimal number", "is not an RFC 3339 time", "is not a name"
BAD = [
    ("id", "", "must not be empty"),
    ("id", "NULL", "must not be empty"),
    ("id", " a", NAME),
    ("id", "a ", NAME),
    ("id", "a\tb", NAME),
    ("id", "a\nb", NAME),
    ("id", "a\x00b", NAME),
    ("id", "a\x7fb", NAME),
    ("id", "x" * 257, "is longer than 256 characters"),
    ("note", "x" * 65_537, "is longer than 65536 characters"),
    *[
        (column, cell, NUMBER)
        for column in ("cost", "gpus")
        for cell in (
            "1,234.50", "1.234,50", "$5", "5 USD", "NaN", "nan", "inf", "-Infinity",
            "+5", "5-", "(5)", ".5", "5.", " 5",
            "1e", "0x10", "1_000", "--5", "\u0665", "true",
        )
    ],
    ("cost", "100000000000000000000000000", "is too large"),
    ("cost", "1e26", "is too large"),
    ("cost", "1e999999", "is too large"),
    ("gpus", "1000000000000", "is too large"),
    ("gpus", "-0.5", "is below 0"),
    ("count", "1.5", "is not a whole number"),
    ("count", "many", "is not a whole number"),
    ("count", "3000000000", "is not a whole number"),
    ("count", "1e3", "is not a whole number"),
    ("count", "-1", "is below 0"),
    ("seen", "2026-05-01", TIME),
    ("seen", "01/05/2026 00:00", TIME),
    ("seen", "2026-05-01T00:00:00 Europe/Berlin", TIME),
    ("seen", "2026-05-01T00:00:00+25:00", TIME),
    ("seen", "2026-05-01T00:00:00+02:75", TIME),
    ("seen", "1777593600", TIME),
    ("seen", "infinity", TIME),
    ("seen", "2026-02-30T00:00:00Z", "is not a time that exists"),
    ("seen", "2026-13-01T00:00:00Z", "is not a time that exists"),
    ("seen", "2026-05-01T23:59:60Z", "is not a time that exists"),
    ("seen", "0000-01-01T00:00:00Z", "is not a time that exists"),
    ("seen", "2026-05-01T00:00:00", "has no time zone"),
    ("seen", "2026-05-01 00:00", "has no time zone"),
    ("currency", "usd", "is not an ISO 4217 currency code"),
    ("currency", "US$", "is not an ISO 4217 currency code"),
    ("month", "2026-5", "is not a month"),
    ("month", "2026-13", "is not a month"),
    ("month", "2026-05-01", "is not a month"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "cell", "message"), BAD, ids=[f"{c}-{v[:24]!r}" for c, v, _ in BAD])
def test_a_bad_cell_is_named_by_row_and_column(
    con: duckdb.DuckDBPyConnection, path: Path, column: str, cell: str, message: str
) -> None:
    found = judged(con, path, column, cell)
    assert found is not None
    assert message in found


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=12))
def test_money_of_twelve_decimals_is_kept_to_the_last_digit(
    con: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory, amount: Decimal
) -> None:
    result = staged(con, tmp_path_factory.getbasetemp() / "money.csv", f"id,cost\n1,{amount:f}\n")
    assert rows(con, "cost") == [(amount,)]
    assert result.rounded_row_count == 0


def test_money_finer_than_stored_is_rounded_half_away_from_zero_and_counted(
    con: duckdb.DuckDBPyConnection, path: Path
) -> None:
    cells = ["0.0000000000005", "-0.0000000000005", "0.00000000000049", "1.0000000000000", "1e-13", "2.5"]
    result = staged(con, path, "id,cost\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(cells)))
    pico = Decimal("1e-12")
    assert [cost for (cost,) in rows(con, "cost")] == [pico, -pico, 0, 1, 0, Decimal("2.5")]
    assert (result.row_count, result.rounded_row_count) == (6, 4)


BERLIN = [
    ("2026-05-01T00:00:00", datetime(2026, 4, 30, 22, tzinfo=UTC)),
    ("2026-05-01 00:00", datetime(2026, 4, 30, 22, tzinfo=UTC)),
    ("2026-01-01T00:00:00", datetime(2025, 12, 31, 23, tzinfo=UTC)),
    ("2026-05-01T00:00:00Z", datetime(2026, 5, 1, tzinfo=UTC)),
    ("2026-03-29T01:59:59", datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC)),
    ("2026-03-29T03:00:00", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("2026-10-25T01:59:59", datetime(2026, 10, 24, 23, 59, 59, tzinfo=UTC)),
    ("2026-10-25T03:00:00", datetime(2026, 10, 25, 2, tzinfo=UTC)),
    ("2026-10-25T02:30:00+02:00", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
]


@pytest.mark.parametrize(("cell", "value"), BERLIN, ids=[cell for cell, _ in BERLIN])
def test_a_time_without_zone_is_read_in_the_zone_given(
    con: duckdb.DuckDBPyConnection, path: Path, cell: str, value: datetime
) -> None:
    assert judged(con, path, "seen", cell, zone="Europe/Berlin") is None
    assert rows(con, "seen")[1] == (value,)


CLOCKS = [
    ("Europe/Berlin", "2026-03-29T02:00:00", "does not exist in Europe/Berlin (clocks went forward)"),
    ("Europe/Berlin", "2026-03-29T02:59:59", "does not exist in Europe/Berlin (clocks went forward)"),
    ("Europe/Berlin", "2026-10-25T02:00:00", "happens twice in Europe/Berlin (clocks went back)"),
    ("Europe/Berlin", "2026-10-25T02:59:59", "happens twice in Europe/Berlin (clocks went back)"),
    ("America/New_York", "2026-11-01T01:30:00", "happens twice in America/New_York"),
    ("Australia/Lord_Howe", "2026-04-05T01:45:00", "happens twice in Australia/Lord_Howe"),
    ("Australia/Lord_Howe", "2026-10-04T02:15:00", "does not exist in Australia/Lord_Howe"),
    ("Europe/Berlin", "2026-02-30T00:00:00", "is not a time that exists"),
]


@pytest.mark.parametrize(("zone", "cell", "message"), CLOCKS)
def test_a_local_time_that_the_clocks_skipped_or_showed_twice_is_refused(
    con: duckdb.DuckDBPyConnection, path: Path, zone: str, cell: str, message: str
) -> None:
    found = judged(con, path, "seen", cell, zone=zone)
    assert found is not None
    assert message in found
