"""Typed files follow the rules of text files: the shortest text of each value is judged."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from fleet.errors import InputError
from store.intake import stage
from tests.store.staging import SPEC, rows

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "things.parquet"


def write(con: duckdb.DuckDBPyConnection, path: Path, select: str) -> Path:
    con.execute(f"COPY (SELECT {select}) TO '{path}' (FORMAT parquet)")
    return path


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("0.1::DOUBLE", Decimal("0.1")),
        ("1e-7::DOUBLE", Decimal("0.0000001")),
        ("123456.789::DOUBLE", Decimal("123456.789")),
        ("0.1::FLOAT", Decimal("0.1")),
        ("12.34::DECIMAL(10, 2)", Decimal("12.34")),
        ("0.000000000001::DECIMAL(38, 12)", Decimal("1e-12")),
        ("7::BIGINT", Decimal(7)),
        ("'7.5'", Decimal("7.5")),
        ("NULL::DOUBLE", None),
        ("''", None),
        ("'NULL'", None),
    ],
)
def test_money(con: duckdb.DuckDBPyConnection, path: Path, value: str, kept: Decimal | None) -> None:
    stage(con, write(con, path, f"'1' AS id, {value} AS cost"), SPEC)
    assert rows(con, "source_row, cost") == [(1, kept)]


def test_a_float_artefact_is_rounded_and_counted(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    result = stage(con, write(con, path, "'1' AS id, 0.1::DOUBLE + 0.2::DOUBLE AS cost"), SPEC)
    assert rows(con, "cost") == [(Decimal("0.3"),)]
    assert result.rounded_row_count == 1


@pytest.mark.parametrize("value", ["'NaN'::DOUBLE", "'inf'::DOUBLE", "true"])
def test_what_is_no_money(con: duckdb.DuckDBPyConnection, path: Path, value: str) -> None:
    with pytest.raises(InputError, match=r"row 1, column cost: .* is not a plain decimal number"):
        stage(con, write(con, path, f"'1' AS id, {value} AS cost"), SPEC)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("TIMESTAMPTZ '2026-05-01 02:00:00+02:00'", datetime(2026, 5, 1, tzinfo=UTC)),
        ("'2026-05-01T00:00:00Z'", datetime(2026, 5, 1, tzinfo=UTC)),
        ("TIMESTAMPTZ '2026-05-01 00:00:00.5+00:00'", datetime(2026, 5, 1, 0, 0, 0, 500000, tzinfo=UTC)),
    ],
)
def test_times(con: duckdb.DuckDBPyConnection, path: Path, value: str, kept: datetime) -> None:
    stage(con, write(con, path, f"'1' AS id, {value} AS seen"), SPEC)
    assert rows(con, "seen") == [(kept,)]


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_MS"])
def test_a_naive_timestamp_needs_a_zone(con: duckdb.DuckDBPyConnection, path: Path, kind: str) -> None:
    write(con, path, f"'1' AS id, {kind} '2026-05-01 00:00:00' AS seen")
    with pytest.raises(InputError, match=r"row 1, column seen: .* has no time zone"):
        stage(con, path, SPEC)
    stage(con, path, SPEC, zone="Europe/Berlin")
    assert rows(con, "seen") == [(datetime(2026, 4, 30, 22, tzinfo=UTC),)]


def test_a_date_is_no_time(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    write(con, path, "'1' AS id, DATE '2026-05-01' AS seen")
    with pytest.raises(InputError, match="is not an RFC 3339 time"):
        stage(con, path, SPEC)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("MAP {'team': 'a', 'env': 'p'}", '{"team":"a","env":"p"}'),
        ("{'team': 'a'}", '{"team":"a"}'),
        ("['a', 'b']", '["a","b"]'),
        ("NULL::MAP(VARCHAR, VARCHAR)", None),
    ],
)
def test_nested_values_become_json(con: duckdb.DuckDBPyConnection, path: Path, value: str, kept: str | None) -> None:
    stage(con, write(con, path, f"'1' AS id, {value} AS note"), SPEC)
    assert rows(con, "note") == [(kept,)]


def test_a_count_may_be_any_number_type(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    for value in ("8::SMALLINT", "8::DOUBLE", "8::DECIMAL(4, 1)"):
        stage(con, write(con, path, f"'1' AS id, {value} AS count"), SPEC)
        assert rows(con, "count") == [(8,)]


def test_a_partition_folder_adds_no_column(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    folder = tmp_path / "BILLING_PERIOD=2026-05"
    folder.mkdir()
    stage(con, write(con, folder / "part.parquet", "'1' AS id"), SPEC)
    assert rows(con, "id") == [("1",)]


@pytest.mark.parametrize("kept", [4, 100, -1], ids=["only the mark", "a beginning", "all but a byte"])
def test_a_cut_off_file_is_refused(con: duckdb.DuckDBPyConnection, path: Path, kept: int) -> None:
    whole = write(con, path, "range::VARCHAR AS id FROM range(1000)").read_bytes()
    path.write_bytes(whole[:kept])
    with pytest.raises(InputError, match="is not a complete Parquet file"):
        stage(con, path, SPEC)


def test_a_file_with_no_rows_is_refused(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    write(con, path, "'1' AS id WHERE false")
    with pytest.raises(InputError, match="has a header but no rows"):
        stage(con, path, SPEC)


def test_the_name_does_not_decide_the_format(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = write(con, tmp_path / "export.csv", "'1' AS id")
    stage(con, path, SPEC)
    assert rows(con, "id") == [("1",)]
