"""Write the rows of a query to a file: CSV as our own loaders read it, or Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.sqltext import literal

if TYPE_CHECKING:
    from pathlib import Path

    from store.lake import Connection
    from store.sqlfile import SqlFile


def write_csv(con: Connection, file: SqlFile, source: Path, out: Path) -> int:
    """Run a query over the Parquet or CSV file `source`, which it reads as `source`; return the row count of `out`."""
    reader = "read_parquet" if source.suffix == ".parquet" else "read_csv"
    con.execute(f"CREATE OR REPLACE TEMP VIEW source AS FROM {reader}({literal(str(source))})")
    # One thread keeps the order of the query, so the same input gives the same bytes.
    row = con.execute(f"COPY ({file.text}\n) TO {literal(str(out))} (FORMAT csv, HEADER)").fetchone()
    return int(row[0]) if row else 0
