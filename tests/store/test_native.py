"""Columns of Parquet that keep their type say what their text would say, to the last digit."""

from __future__ import annotations

import gzip
import math
import struct
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleet.errors import InputError
from store.columns import Column, FileSpec, Kind, text_cell
from store.intake import stage
from store.landing import land
from store.native import native_cell
from store.staging import table_records
from tests.store.staging import SPEC, only, problems, rows

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

COST = Column("cost", "cost", Kind.MONEY)
ONE = Decimal("1e-12")
FITS = Decimal(10) ** 26


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    return tmp_path / "things.parquet"


def write(con: duckdb.DuckDBPyConnection, path: Path, select: str) -> Path:
    con.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path


def kept(shortest: str) -> tuple[Decimal | None, bool]:
    """What money says of a number: its 12 decimals, half away from zero, and whether it had more."""
    exact = Decimal(shortest)
    with localcontext() as context:
        context.prec = 400
        money = exact.quantize(ONE, ROUND_HALF_UP)
        return (None, False) if abs(money) >= FITS else (money, money != exact)


def bits(number: int) -> float:
    (value,) = struct.unpack("<d", struct.pack("<Q", number))
    return float(value)


doubles = st.one_of(
    st.integers(0, 2**64 - 1).map(bits).filter(math.isfinite),
    st.floats(-2000, 2000),
    st.floats(-1e-9, 1e-9),
    st.floats(-1e18, 1e18),
    # Near what is rounded up and what is rounded down, near the bounds of the arithmetic, and what bills say.
    st.builds(lambda n, k: math.nextafter((n + 0.5) * 1e-12, k), st.integers(-(10**15), 10**15), st.integers(-1, 1)),
    st.builds(lambda n, k: n / 10**k, st.integers(-(10**16), 10**16), st.integers(0, 13)),
    st.sampled_from([5e-324, -0.0, 999.9999999999999, 1000.0, 1111.1, 1e9, 999999999.999999, 1e15, 1e16, 1e17, 1e26]),
)


@settings(max_examples=60)
@given(st.lists(doubles, min_size=60, max_size=200))
@example(
    [5e-13, 4.9999999999999e-13, 1.5e-12, 0.1 + 0.2, 1e-20, 5e-21, 4e-21, 2.5e-12, 1234567.1234564999, 9.9e25, 1e26]
)
def test_a_double_is_the_decimal_of_its_shortest_text(con: duckdb.DuckDBPyConnection, values: list[float]) -> None:
    cell = native_cell(COST, "DOUBLE", None)
    assert cell
    refused = " OR ".join(f"({bad})" for bad, _ in cell.checks)
    found = con.execute(
        f"SELECT cost, {cell.value}, coalesce({refused}, false), {cell.is_rounded} "
        "FROM (SELECT unnest($v::DOUBLE[]) AS cost)",
        {"v": values},
    ).fetchall()
    for value, money, is_refused, is_rounded in found:
        wanted, is_finer = kept(repr(value))
        assert (money, is_refused) == (wanted, wanted is None), value
        if wanted is not None:
            assert is_rounded == is_finer, value


@pytest.mark.parametrize("kind", ["DECIMAL(18, 2)", "DECIMAL(38, 12)", "DECIMAL(38, 18)", "DECIMAL(38, 20)", "BIGINT"])
@settings(max_examples=20)
@given(data=st.data())
def test_decimals_and_whole_numbers_are_kept_or_rounded_half_away(
    con: duckdb.DuckDBPyConnection, kind: str, data: st.DataObject
) -> None:
    scale = int(kind.partition(", ")[2].rstrip(")") or 0)
    top = 10 ** (37 if "38" in kind else 17)
    whole = data.draw(st.lists(st.integers(-top, top), min_size=1, max_size=50))
    texts = [f"{Decimal(number).scaleb(-scale):f}" for number in whole]
    cell = native_cell(COST, kind, None)
    assert cell
    found = con.execute(
        f"SELECT {cell.value}, {cell.is_rounded} FROM (SELECT CAST(unnest($v::VARCHAR[]) AS {kind}) AS cost)",
        {"v": texts},
    ).fetchall()
    assert found == [kept(text) for text in texts]


def test_a_decimal_that_is_rounded_out_of_its_own_type_is_counted(
    con: duckdb.DuckDBPyConnection, parquet: Path
) -> None:
    write(con, parquet, "SELECT '1' AS id, 99999999999999999999.999999999999999999::DECIMAL(38, 18) AS cost")
    assert stage(con, parquet, SPEC).rounded_row_count == 1
    assert rows(con, "cost") == [(Decimal(10**20),)]


@pytest.mark.parametrize("value", ["1e26::DOUBLE", "-1e300::DOUBLE", "99999999999999999999999999999::DECIMAL(38, 0)"])
def test_what_does_not_fit_is_too_large(con: duckdb.DuckDBPyConnection, parquet: Path, value: str) -> None:
    write(con, parquet, f"SELECT '1' AS id, {value} AS cost")
    with pytest.raises(InputError, match=r"row 1, column cost: .* is too large"):
        stage(con, parquet, SPEC)


def test_large_doubles_are_exact(con: duckdb.DuckDBPyConnection, parquet: Path) -> None:
    write(con, parquet, "SELECT '1' AS id, unnest([1e16, 123456789012345680.0, 1e25]) AS cost")
    stage(con, parquet, SPEC)
    assert rows(con, "cost") == [(Decimal(10**16),), (Decimal(123456789012345680),), (Decimal(10**25),)]


times = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
Z = "America/New_York"


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_S", "TIMESTAMP WITH TIME ZONE"])
@pytest.mark.parametrize("zone", [None, "UTC", Z])
@settings(max_examples=10)
@given(drawn=st.lists(times, min_size=1, max_size=30))
@example(drawn=[datetime(2026, 3, 8, 2, 30), datetime(2026, 11, 1, 1, 30), datetime(2026, 11, 1, 3)])
def test_times_say_what_their_text_says(
    con: duckdb.DuckDBPyConnection, kind: str, zone: str | None, drawn: list[datetime]
) -> None:
    seen = Column("seen", "seen", Kind.TIME)
    native, text = native_cell(seen, kind, zone), text_cell(seen, zone)
    assert native
    values = f"SELECT CAST(unnest($v::TIMESTAMP[]) AS {kind}) AS seen"

    def judged(cell_value: str, checks: tuple[tuple[str, str], ...], source: str) -> list[tuple[object, ...]]:
        found = ", ".join(f"CASE WHEN {bad} THEN '{message}' END" for bad, message in checks)
        bad = f"coalesce({found})"
        query = f"SELECT CASE WHEN {bad} IS NULL THEN epoch_us({cell_value}) END, {bad} FROM ({source})"
        return con.execute(query, {"v": drawn}).fetchall()

    as_text = f"SELECT CAST(seen AS VARCHAR) AS seen FROM ({values})"
    assert judged(native.value, native.checks, values) == judged(text.value, text.checks, as_text)


@pytest.mark.parametrize(
    "value",
    [
        "'infinity'::TIMESTAMP",
        "'-infinity'::TIMESTAMPTZ",
        "TIMESTAMP '0044-03-15 (BC) 00:00:00'",
        "TIMESTAMP '10000-01-01'",
    ],
)
def test_what_is_no_time_of_four_digits_is_shown(con: duckdb.DuckDBPyConnection, parquet: Path, value: str) -> None:
    write(con, parquet, f"SELECT '1' AS id, {value} AS seen")
    with pytest.raises(InputError, match=r"row 1, column seen: '.+' is not an RFC 3339 time"):
        stage(con, parquet, SPEC, zone="UTC")


def test_nanoseconds_are_cut_as_in_text(con: duckdb.DuckDBPyConnection, parquet: Path, path: Path) -> None:
    write(con, parquet, "SELECT '1' AS id, TIMESTAMP_NS '2026-05-01 00:00:00.123456999' AS seen")
    path.write_text("id,seen\n1,2026-05-01T00:00:00.123456999Z\n")
    for file in (parquet, path):
        stage(con, file, SPEC, zone="UTC")
        assert rows(con, "seen") == [(datetime(2026, 5, 1, 0, 0, 0, 123456, tzinfo=UTC),)]


def test_whole_numbers_that_are_no_count(con: duckdb.DuckDBPyConnection, parquet: Path) -> None:
    write(con, parquet, "SELECT '1' AS id, unnest([3000000000, -1, NULL]) AS count")
    with pytest.raises(InputError) as caught:
        stage(con, parquet, SPEC)
    assert [(p.row, p.message) for p in caught.value.problems] == [
        (1, "'3000000000' is not a whole number"), (2, "'-1' is below 0"),
    ]  # fmt: skip


def test_rows_have_the_numbers_of_the_file_whatever_reads_them(con: duckdb.DuckDBPyConnection, parquet: Path) -> None:
    total = 300_000
    write(con, parquet, f"SELECT CAST(range + 1 AS VARCHAR) AS id, 0.5::DOUBLE AS cost FROM range({total})")
    stage(con, parquet, SPEC)
    assert con.execute("SELECT count(*) FROM staged WHERE source_row = id::INTEGER").fetchall() == [(total,)]
    assert con.execute("SELECT count(*) FROM (SELECT source_row - lag(source_row) OVER () AS step FROM staged) "
                       "WHERE step <> 1").fetchall() == [(0,)]  # fmt: skip


def test_a_column_may_be_called_like_the_row_number(con: duckdb.DuckDBPyConnection, parquet: Path) -> None:
    write(con, parquet, "SELECT unnest(['a', 'b']) AS id, 7 AS file_row_number, 8 AS source_row")
    stage(con, parquet, SPEC, ignored=["file_row_number", "source_row"])
    assert rows(con, "source_row, id") == [(1, "a"), (2, "b")]


def test_a_damaged_page_is_the_files_problem(con: duckdb.DuckDBPyConnection, parquet: Path) -> None:
    whole = bytearray(write(con, parquet, "SELECT md5(CAST(range AS VARCHAR)) AS id FROM range(5000)").read_bytes())
    whole[40:20000] = bytes(19960)
    parquet.write_bytes(whole)
    with pytest.raises(InputError, match="is not a complete Parquet file"):
        stage(con, parquet, SPEC)


def test_only_known_columns_are_read_and_nothing_else_is_made_text(
    con: duckdb.DuckDBPyConnection, parquet: Path
) -> None:
    write(con, parquet, "SELECT '1' AS id, 0.5::DOUBLE AS cost, 7 AS x_more, TIMESTAMP '2026-05-01 00:00:00' AS seen")
    landed = land(con, parquet, SPEC)
    assert landed.headers == ("id", "cost", "x_more", "seen")
    assert landed.types == {"cost": "DOUBLE", "seen": "TIMESTAMP"}
    assert "x_more" not in landed.relation


def test_records_of_a_parquet_file_are_text(con: duckdb.DuckDBPyConnection, parquet: Path) -> None:
    write(con, parquet, "SELECT '1' AS id, 0.5::DOUBLE AS cost, 7 AS x_more")
    found = list(table_records(con, parquet, SPEC, ["id", "cost", "x_more", "gone"]))
    assert found == [(1, {"id": "1", "cost": "0.5", "x_more": "7"})]


def test_the_same_rows_from_csv_gzip_and_parquet(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    text = (
        "id,cost,gpus,count,seen,note\n1,0.1,0.5,3,2026-05-01 00:00:00+00,\n\n2,-1e-7,,,2026-05-01 00:00:00.25+00,x\n"
    )
    kinds = {"id": "VARCHAR", "cost": "DOUBLE", "gpus": "DOUBLE", "count": "BIGINT", "seen": "TIMESTAMPTZ"}
    columns = kinds | {"note": "VARCHAR"}
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    write(con, tmp_path / "a.parquet", f"FROM read_csv('{plain}', columns = {columns})")
    said = []
    for file in (plain, packed, tmp_path / "a.parquet"):
        result = stage(con, file, SPEC)
        said.append((rows(con, "* EXCLUDE (source_row)"), result.row_count, result.rounded_row_count))
        numbers = rows(con, "source_row")
        assert numbers == ([(1,), (2,)] if file.suffix == ".parquet" else [(2,), (4,)])
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("kept_bytes", [3, 30, -1, -9])
def test_a_cut_off_gzip_file_is_refused(con: duckdb.DuckDBPyConnection, path: Path, kept_bytes: int) -> None:
    whole = gzip.compress("".join(["id,note\n", *(f"{n},{n * n}\n" for n in range(5000))]).encode())
    message = "is not a complete gzip file (cut off or damaged)"
    assert only(problems(con, path, whole[:kept_bytes])) == (None, None, message)


def test_problems_in_a_gzip_file_have_their_rows(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    assert only(problems(con, path, gzip.compress(b"id,cost\r\n1,2\r\n\r\n2,x\r\n")))[:2] == (4, "cost")
    spec = FileSpec("plain", "plain", (Column("id", "id", Kind.TEXT), Column("note", "note", Kind.TEXT)))
    path.write_bytes(gzip.compress(b"id,note\n\n1,a\n") + gzip.compress(b"2,b\n"))
    stage(con, path, spec)
    assert rows(con, "source_row, id") == [(3, "1"), (4, "2")]
