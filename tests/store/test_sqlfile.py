"""SQL files keep what their headers promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from store.lake import memory
from store.sqlfile import SqlFileError, folder_files, materialise, parse, rows_of, tables_read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = memory()
    connection.execute("CREATE TABLE charge AS SELECT * FROM (VALUES ('a', 1), ('a', 2), ('b', 3)) AS t (name, n)")
    connection.execute("CREATE TABLE node AS SELECT 'a' AS name")
    yield connection
    connection.close()


def test_a_header_is_read_with_continued_lines_and_the_name_without_number() -> None:
    file = parse(
        "010_charge_span.sql",
        "-- Purpose: first,\n--   and more\n-- Grain: a, b\n-- Reads: charge,\n--   node\n"
        "\nSELECT 1\n-- Grain: not this\n",
    )
    assert file.name == "charge_span"
    assert file.header["Purpose"] == "first, and more"
    assert (file.grain, file.reads) == (("a", "b"), ("charge", "node"))


@pytest.mark.parametrize("word", ["none", "nothing", ""])
def test_a_header_may_claim_nothing(word: str) -> None:
    file = parse("a.sql", f"-- Purpose: p\n-- Grain: {word}\n-- Reads: {word}\nSELECT 1")
    assert (file.grain, file.reads) == ((), ())


@pytest.mark.parametrize("text", ["SELECT 1", "", "-- a comment without a key\nSELECT 1", "\n-- Purpose: too late"])
def test_a_file_without_a_header_is_refused(text: str) -> None:
    with pytest.raises(SqlFileError, match=r"lost\.sql: no header"):
        parse("lost.sql", text)


def test_parameters_are_those_of_the_query_and_not_of_comments() -> None:
    file = parse("a.sql", "-- Purpose: $not_this\nSELECT $period, $max_n -- nor $this_one\n WHERE $period = 'x'")
    assert file.parameters == {"period", "max_n"}
    assert file.bound({"period": 1, "max_n": 2, "unused": 3}) == {"period": 1, "max_n": 2}
    with pytest.raises(KeyError):
        file.bound({"period": 1})


def test_a_folder_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    for name in ("020_b.sql", "010_c.sql", "notes.txt"):
        (tmp_path / name).write_text("-- Purpose: p\nSELECT 1")
    assert [file.name for file in folder_files(tmp_path)] == ["c", "b"]


def test_a_model_becomes_the_table_of_its_name(con: duckdb.DuckDBPyConnection) -> None:
    file = parse(
        "010_total.sql", "-- Grain: name\n-- Reads: charge\nSELECT name, sum(n) + $extra AS n FROM charge GROUP BY name"
    )
    assert materialise(con, file, {"extra": 10}) == 2
    assert con.execute("SELECT name, n FROM total ORDER BY name").fetchall() == [("a", 13), ("b", 13)]
    assert materialise(con, file, {"extra": 0}) == 2, "running a step again replaces its table"
    assert con.execute("SELECT n FROM total ORDER BY name").fetchall() == [(3,), (3,)]


def test_a_table_that_the_header_does_not_name_is_found_out(con: duckdb.DuckDBPyConnection) -> None:
    file = parse("a.sql", "-- Grain: none\n-- Reads: charge\nSELECT * FROM charge JOIN node USING (name)")
    with pytest.raises(SqlFileError, match=r"a: header `Reads` lacks \['node'\] and names \[\]"):
        materialise(con, file, {})


def test_a_table_that_the_query_does_not_read_is_found_out(con: duckdb.DuckDBPyConnection) -> None:
    file = parse("a.sql", "-- Grain: none\n-- Reads: charge, node\nSELECT * FROM charge")
    with pytest.raises(SqlFileError, match=r"names \['node'\], which it does not read"):
        materialise(con, file, {})


@pytest.mark.parametrize("grain", ["name", "name, nothing_here"], ids=["doubled", "null"])
def test_rows_that_the_grain_does_not_tell_apart_are_found_out(con: duckdb.DuckDBPyConnection, grain: str) -> None:
    query = "SELECT name, NULL::INTEGER AS nothing_here, n FROM charge"
    with pytest.raises(SqlFileError, match=rf"a: grain \({grain}\) is not unique: \('a'.* appears 2 times"):
        materialise(con, parse("a.sql", f"-- Grain: {grain}\n-- Reads: charge\n{query}"), {})
    assert materialise(con, parse("a.sql", f"-- Grain: {grain}, n\n-- Reads: charge\n{query}"), {}) == 3


def test_a_query_gives_its_columns_and_rows(con: duckdb.DuckDBPyConnection) -> None:
    file = parse("a.sql", "-- Reads: charge\nSELECT name, n FROM charge WHERE n > $least ORDER BY n")
    assert rows_of(con, file, {"least": 1, "other": 0}) == (["name", "n"], [("a", 2), ("b", 3)])


READS = [
    ("SELECT 1", set()),
    ("SELECT * FROM charge", {"charge"}),
    ("FROM charge", {"charge"}),
    ("SELECT * FROM lake.charge AS c, lake.main.node", {"charge", "node"}),
    ("WITH t AS (SELECT * FROM charge) SELECT * FROM t", {"charge"}),
    ("WITH t AS (SELECT * FROM charge), u AS (FROM t JOIN node USING (name)) FROM u", {"charge", "node"}),
    ("SELECT * FROM (WITH t AS (FROM charge) FROM t) AS s", {"charge"}),
    ("WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t JOIN node ON n < 3) FROM t", {"node"}),
    ("SELECT (SELECT max(n) FROM charge) AS top FROM node", {"charge", "node"}),
    ("SELECT * FROM node WHERE EXISTS (FROM charge AS c WHERE c.name = node.name)", {"charge", "node"}),
    ("SELECT * FROM node WHERE name IN (SELECT name FROM charge)", {"charge", "node"}),
    ("SELECT * FROM node ANTI JOIN charge USING (name)", {"charge", "node"}),
    ("(FROM node EXCEPT SELECT name FROM charge) UNION ALL SELECT name FROM holding", {"charge", "node", "holding"}),
    ("SELECT * FROM node, LATERAL (SELECT * FROM charge AS c WHERE c.name = node.name)", {"charge", "node"}),
    ("SELECT * FROM range(10), unnest([1, 2]), read_csv('x.csv'), duckdb_columns()", set()),
    ("SELECT unnest(range(n)) FROM charge QUALIFY row_number() OVER (ORDER BY n) = 1", {"charge"}),
    ("SELECT 'FROM node' AS text FROM charge -- FROM holding", {"charge"}),
]


@pytest.mark.parametrize(("query", "expected"), READS, ids=[query[:40] for query, _ in READS])
def test_tables_read(con: duckdb.DuckDBPyConnection, query: str, expected: set[str]) -> None:
    assert tables_read(con, query) == expected


@pytest.mark.parametrize("query", ["SELECT FROM WHERE", "DELETE FROM charge", "CREATE TABLE x (n INTEGER)"])
def test_what_is_not_a_query_is_refused(con: duckdb.DuckDBPyConnection, query: str) -> None:
    with pytest.raises(SqlFileError, match="not one SELECT statement"):
        tables_read(con, query)
