"""Stage a delivery of several files as one table, and map its columns to those of an input table of the lake."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from store.intake import Staged, stage
from store.sqlfile import SqlFile, SqlFileError, tables_read
from store.sqltext import identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import duckdb

    from store.columns import FileSpec


def stage_parts(
    con: duckdb.DuckDBPyConnection,
    source: str,
    files: Sequence[tuple[str, Path]],
    spec: FileSpec,
    *,
    zone: str | None = None,
    ignored: Sequence[str] = (),
) -> Staged:
    """Stage named files as view `export_row`: the fields of `spec`, `source_row` through all files, `part`, `part_row`.

    Of a single file `part` and `part_row` are NULL. The content is the same whatever the order of several files.
    """
    digests: list[str] = []
    last_row = row_count = rounded_row_count = 0
    for name, path in sorted(files):
        staged = stage(con, path, spec, zone=zone, ignored=ignored)
        if len(files) == 1:
            _show_only_file(con, staged)
        else:
            last_row = _add_file(con, staged, name, last_row)
        digests.append(staged.file_sha256)
        row_count += staged.row_count
        rounded_row_count += staged.rounded_row_count
    whole = digests[0] if len(digests) == 1 else hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()
    return Staged("export_row", source, whole, row_count, rounded_row_count)


def map_rows(con: duckdb.DuckDBPyConnection, staged: Staged, mapping: SqlFile, table: str) -> Staged:
    """Run a mapping over `export_row` into temporary table `staged_<table>`: the columns of `lake.<table>`, no others.

    SqlFileError if the mapping reads anything else, or gives a column another type than the lake's: then DuckDB would
    convert it without a word, a float to money too.
    """
    name = f"staged_{table}"
    if tables_read(con, mapping.text) != set(mapping.reads):
        raise SqlFileError(f"{mapping.name}: header `Reads` names other tables than it reads")
    wanted = _types(con, f"SELECT * EXCLUDE (snapshot_id) FROM lake.{table}")
    given = _types(con, mapping.text)
    wrong = [
        f"{column} is {kind} and not {wanted.get(column, 'a column of the lake')}"
        for column, kind in sorted(given.items())
        if kind not in (wanted.get(column), '"NULL"')
    ]
    if wrong:
        raise SqlFileError(f"{mapping.name}: {', '.join(wrong)}")
    # DuckDB fills a table as it creates it in half the time that an INSERT takes.
    columns = [
        f"CAST({identifier(column) if column in given else 'NULL'} AS {kind}) AS {identifier(column)}"
        for column, kind in wanted.items()
    ]
    with joins_as_written(con):
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {', '.join(columns)} FROM ({mapping.text})")
    ((row_count,),) = con.execute(f"SELECT count(*) FROM {name}").fetchall()
    return replace(staged, table=name, row_count=int(row_count))


@contextmanager
def joins_as_written(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let queries join in the order in which they are written, the smaller table on the right.

    DuckDB knows nothing of the sizes of tables that were written in the same transaction: it takes them for empty, and
    would copy a million charges to look up in each of 15 types of lines.
    """
    con.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    try:
        yield
    finally:
        con.execute("RESET disabled_optimizers")


def money_of(con: duckdb.DuckDBPyConnection, staged: Staged) -> tuple[tuple[Any, ...], ...]:
    """Rows and money of staged charges: currency, category, is it a split row, row count, billed, effective cost."""
    return tuple(
        con.execute(
            "SELECT billing_currency, charge_category, coalesce(x_is_split_row, false), count(*), sum(billed_cost), "
            f"sum(effective_cost) FROM {staged.table} GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    )


def _show_only_file(con: duckdb.DuckDBPyConnection, staged: Staged) -> None:
    con.execute(
        "CREATE OR REPLACE TEMP VIEW export_row AS "
        f"SELECT *, CAST(NULL AS VARCHAR) AS part, CAST(NULL AS BIGINT) AS part_row FROM {staged.table}"
    )
    con.execute("DROP TABLE IF EXISTS export_rows")


def _add_file(con: duckdb.DuckDBPyConnection, staged: Staged, part: str, last_row: int) -> int:
    """Add a file's rows to those of the files before it; return the number of its last one."""
    rows = (
        "SELECT source_row + $last AS source_row, * EXCLUDE (source_row), $part AS part, source_row AS part_row "
        f"FROM {staged.table}"
    )
    values = {"last": last_row, "part": part}
    if last_row == 0:
        con.execute(f"CREATE OR REPLACE TEMP TABLE export_rows AS {rows}", values)
        con.execute("CREATE OR REPLACE TEMP VIEW export_row AS FROM export_rows")
    else:
        con.execute(f"INSERT INTO export_rows BY NAME {rows}", values)
    ((last,),) = con.execute("SELECT max(source_row) FROM export_rows").fetchall()
    return int(last)


def _types(con: duckdb.DuckDBPyConnection, query: str) -> dict[str, str]:
    return dict(con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {query})").fetchall())
