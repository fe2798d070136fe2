"""Between Python and a staged table: rows that a program read, and rows that it wants to read out of a table file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.intake import Staged, file_sha256
from store.landing import land, told
from store.sqltext import identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import duckdb

    from store.columns import FileSpec

RECORDS_AT_ONCE = 1000


def stage_rows(
    con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec, rows: Sequence[tuple[object, ...]]
) -> Staged:
    """Stage rows read from `path` as temporary table `staged`, as `store.intake.stage` does for a table file.

    Each row is its source row and one value per field of `spec`, in order, already of the column's type.
    """
    fields = [("source_row", "BIGINT"), *((column.field, column.kind.sql_type) for column in spec.unique_fields())]
    columns = zip(*rows, strict=True) if rows else [() for _ in fields]
    listed = {f"c{number}": list(values) for number, values in enumerate(columns)}
    selected = ", ".join(
        f"unnest(CAST(${name} AS {kind}[])) AS {identifier(field)}"
        for name, (field, kind) in zip(listed, fields, strict=True)
    )
    con.execute(f"CREATE OR REPLACE TEMP TABLE staged AS SELECT {selected}", listed)
    return Staged("staged", path.name, file_sha256(path), len(rows), 0)


def table_records(
    con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec, wanted: Sequence[str]
) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Read the `wanted` columns of a CSV or Parquet file as text, row by row with its number; others are left out.

    Raises InputError when the file cannot be read. The connection serves nothing else until the last row is taken.
    """
    landed = land(con, path, spec, texts=wanted)
    names = [name for name in wanted if name in landed.headers]
    selected = ", ".join(["source_row", *map(identifier, names)])
    with told(path):
        found = con.execute(f"SELECT {selected} FROM {landed.relation} ORDER BY source_row")
        rows = found.fetchmany(RECORDS_AT_ONCE)
    while rows:
        for row, *values in rows:
            yield row, dict(zip(names, values, strict=True))
        rows = found.fetchmany(RECORDS_AT_ONCE)
    con.execute("DROP TABLE IF EXISTS landed")
