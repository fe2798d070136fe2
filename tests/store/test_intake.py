"""A user's CSV is read whole or refused with the row and column of every problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fleet.errors import InputError
from store.columns import Column, FileSpec, Kind
from store.intake import stage
from tests.store.staging import EITHER, SPEC, only, problems, rows, staged

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb


def test_row_numbers_are_the_lines_of_the_file(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    lines = ["id,cost", *(f"{n},{'x' if n in (2, 500, 999) else n}" for n in range(2, 1000))]
    found = problems(con, path, "\n".join(lines))
    assert [problem.row for problem in found] == [2, 500, 999]
    assert lines[499] == "500,x"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_count_as_rows(con: duckdb.DuckDBPyConnection, path: Path, end: str) -> None:
    text = end.join(["id,note,cost", "", "a,1,1", "", "", 'b,"quoted', "", 'text",1', "c,,x", "", ""])
    assert only(problems(con, path, text))[:2] == (7, "cost")
    staged(con, path, text.replace("c,,x", "c,,3"))
    assert rows(con, "source_row, id") == [(3, "a"), (6, "b"), (7, "c")]


def test_rows_keep_the_order_of_a_file_read_in_parallel(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    total = 300_000
    staged(con, path, "id,note\n" + "".join(f"{n},{'y' * (n % 90)}\n" for n in range(2, total + 2)))
    assert con.execute("SELECT count(*) FROM staged WHERE source_row = id::INTEGER").fetchall() == [(total,)]


def test_all_problems_are_found_in_the_order_of_the_file_and_bounded(
    con: duckdb.DuckDBPyConnection, path: Path
) -> None:
    found = problems(con, path, "id,cost,seen\n" + "a,x,y\n" * 30)
    assert [(p.row, p.column) for p in found[:4]] == [(2, "cost"), (2, "seen"), (3, "cost"), (3, "seen")]
    assert len(found) == 40


HEADERS = [
    ("id,colour2\n1,2\n", [(1, "colour2", "unknown column")]),
    ("ID,note\n1,2\n", [(1, "ID", "unknown column, did you mean id?"), (1, "id", "required column is missing")]),
    ("note\n1\n", [(1, "id", "required column is missing")]),
    ("id;note\n1;2\n", [(1, "id;note", "unknown column"), (1, "id", "required column is missing")]),
    ("id,note,note\n1,2,3\n", [(1, "note", "appears twice in the header")]),
    ("id,note,Note\n1,2,3\n", [(1, "Note", "appears twice"), (1, "note", "appears twice")]),
    ("id,note,\n1,2,\n", [(1, None, "a column without a name")]),
    ("\nid,note\n1,2\n", [(1, None, "a column without a name")]),
    ("\ufeff", [(1, None, "a column without a name")]),
    ('id,"note\n1,2\n', [(1, None, "no readable UTF-8 header row")]),
    ("id,n\u00f6te\n1,2\n".encode("latin-1"), [(1, None, "no readable UTF-8 header row")]),
    ("id,note\n1,2\n".encode("utf-16"), [(1, None, "no readable UTF-8 header row")]),
]


@pytest.mark.parametrize(("content", "expected"), HEADERS, ids=[repr(c)[:30] for c, _ in HEADERS])
def test_a_bad_header_is_named(
    con: duckdb.DuckDBPyConnection, path: Path, content: str | bytes, expected: list[tuple[int, str | None, str]]
) -> None:
    found = problems(con, path, content)
    assert [(p.row, p.column) for p in found] == [(row, column) for row, column, _ in expected]
    assert all(message in p.message for p, (_, _, message) in zip(found, expected, strict=True))


def test_known_custom_and_ignored_columns_are_left_out(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    staged(con, path, "id,colour,x_more,odd\n1,red,2,3\n", ignored=["odd"])
    assert [name for name, *_ in con.execute("DESCRIBE staged").fetchall()] == [
        "source_row", *(column.field for column in SPEC.columns)
    ]  # fmt: skip


def test_an_ignored_column_is_not_read_even_if_it_is_known(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    staged(con, path, "id,cost,source_row\n1,not money,9\n", ignored=["cost", "source_row"])
    assert rows(con, "source_row, id, cost") == [(2, "1", None)]
    assert only(problems(con, path, "id,cost\n1,2\n", ignored=["id"])) == (1, "id", "required column is missing")


def test_a_missing_optional_column_is_unknown_never_zero(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    staged(con, path, "id\n1\n")
    assert rows(con, "note, cost, gpus, count, seen, currency, month") == [(None,) * 7]


BROKEN = [
    ("id,note\n1,2\n3\n", 3, "Expected Number of Columns: 2 Found: 1"),
    ("id,note\n1,2\n3,4,5\n", 3, "Expected Number of Columns: 2 Found: 3"),
    ('id,note\n1,2\n3,"4\n5,6\n', 3, "unterminated quote"),
    ('id,note\n1,2\n3,"4"5\n', 3, "unterminated quote"),
    (b"id,note\n1,2\n3,\xff\n", 3, "not utf-8"),
    (b"id,note\r\n1,2\n3,4\r\n", None, "line ends differ"),
    ("id,note\n1,2\n3," + "x" * 9_000_000 + "\n", 3, "Maximum line size"),
]


@pytest.mark.parametrize(("content", "row", "message"), BROKEN, ids=[case[2] for case in BROKEN])
def test_a_file_that_is_no_csv_is_refused_with_its_row(
    con: duckdb.DuckDBPyConnection, path: Path, content: str | bytes, row: int | None, message: str
) -> None:
    found = only(problems(con, path, content))
    assert (found[0], found[1]) == (row, None)
    assert message in found[2]
    assert len(found[2]) < 200


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfid,note\n1,a\n2,b\n",
        b"id,note\r\n1,a\r\n2,b\r\n",
        b"\xef\xbb\xbfid,note\r\n1,a\r\n2,b",
        b'"id","note"\n"1","a"\n"2","b"\n',
        b"note,id\na,1\nb,2\n",
    ],
    ids=["bom", "crlf", "bom crlf no last end", "all quoted", "other order"],
)
def test_the_usual_shapes_of_csv_read_the_same(con: duckdb.DuckDBPyConnection, path: Path, content: bytes) -> None:
    staged(con, path, content)
    assert rows(con, "source_row, id, note") == [(2, "1", "a"), (3, "2", "b")]


def test_a_megabyte_in_one_cell_is_named_without_repeating_it(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    found = only(problems(con, path, f"id,note\n1,a\n2,{'x' * 1_000_000}\n"))
    assert found[:2] == (3, "note")
    assert "is longer than 65536 characters" in found[2]
    assert len(found[2]) < 200
    staged(con, path, f"id,x_blob\n1,{'x' * 1_000_000}\n")
    assert rows(con, "id") == [("1",)]


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "is empty"), ("id,note\n", "has a header but no rows"), ("id,note", "has a header but no rows")],
)
def test_a_file_without_rows_is_refused(con: duckdb.DuckDBPyConnection, path: Path, content: str, message: str) -> None:
    assert only(problems(con, path, content)) == (None, None, message)


def test_a_file_that_cannot_be_read_is_refused(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.csv: cannot be read: No such file"):
        stage(con, tmp_path / "gone.csv", SPEC)


@pytest.mark.parametrize("name", ["in[v].csv", "in*.csv", "in?.csv", "it's.csv", "100% #1.csv", "\u00fc.csv"])
def test_exactly_the_named_file_is_read(con: duckdb.DuckDBPyConnection, tmp_path: Path, name: str) -> None:
    """DuckDB takes `*`, `?` and `[` in a path for patterns: another file would be read under this one's hash."""
    for folder in (tmp_path, tmp_path / "of [2026] *"):
        folder.mkdir(exist_ok=True)
        for other in ("inv.csv", "in1.csv"):
            (folder / other).write_text("id\nother\n")
        staged(con, folder / name, "id\nthis\n")
        assert rows(con, "id") == [("this",)]


def test_row_of_a_choice_must_have_exactly_one(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    found = problems(con, path, "node,pool,n\na,,1\n,,2\na,b,3\n,b,4\n", spec=EITHER)
    assert [(p.row, p.message) for p in found] == [
        (3, "exactly one of node, pool must be given, found 0"),
        (4, "exactly one of node, pool must be given, found 2"),
    ]
    assert only(problems(con, path, "n\n1\n", spec=EITHER)) == (1, None, "one of the columns node, pool is required")


ZONED = "at,time_zone\n2026-05-01T02:00:00,{}\n2026-05-01T03:00:00,{}\n"


@pytest.mark.parametrize(
    ("zones", "asked", "outcome"),
    [
        (("Europe/Berlin", "Europe/Berlin"), None, ["2026-05-01T00:00:00", "2026-05-01T01:00:00"]),
        (("Europe/Berlin", "Europe/Berlin"), "Europe/Berlin", ["2026-05-01T00:00:00", "2026-05-01T01:00:00"]),
        (("Europe/Berlin", "Europe/Berlin"), "UTC", (2, "'Europe/Berlin' is another zone than '--time-zone UTC'")),
        (("Europe/Berlin", "UTC"), None, (3, "'UTC' is another zone than 'Europe/Berlin'")),
        (("Europe/Berlin", ""), None, (3, "time zone")),
        (("Mars/Olympus", "Mars/Olympus"), None, (2, "Mars/Olympus")),
    ],
)
def test_a_file_may_name_the_zone_of_its_times(
    con: duckdb.DuckDBPyConnection,
    tmp_path: Path,
    zones: tuple[str, str],
    asked: str | None,
    outcome: list[str] | tuple[int, str],
) -> None:
    spec = FileSpec("zoned", "zoned", (Column("at", "at", Kind.TIME, required=True),))
    path = tmp_path / "zoned.csv"
    path.write_text(ZONED.format(*zones), encoding="utf-8")
    if isinstance(outcome, list):
        stage(con, path, spec, zone=asked)
        rows = con.execute("""SELECT strftime("at", '%Y-%m-%dT%H:%M:%S') FROM staged ORDER BY source_row""").fetchall()
        assert [text for (text,) in rows] == outcome
        return
    with pytest.raises(InputError) as caught:
        stage(con, path, spec, zone=asked)
    (problem,) = caught.value.problems
    assert (problem.row, problem.column) == (outcome[0], "time_zone")
    assert outcome[1] in problem.message
