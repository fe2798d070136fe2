"""Read a CSV or Parquet file as text, whatever it holds: nothing is guessed before a cell has been judged."""

from __future__ import annotations

import csv
import mmap
import re
from typing import TYPE_CHECKING

import duckdb

from fleet.errors import InputError, Problem
from store.sqltext import identifier, literal

if TYPE_CHECKING:
    from pathlib import Path

    from store.columns import FileSpec

MAX_LINE_BYTES = 8 * 1024 * 1024
PARQUET_MAGIC = b"PAR1"
TELLING = ("Expected Number", "Value with unterminated", "Invalid unicode", "Maximum line")
"""How the line of DuckDB's CSV report starts that says what is wrong."""


def land_text(con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec) -> list[str]:
    """Create temporary table `landed`: every column as text, plus `source_row`; return the file's column names."""
    if path.stat().st_size == 0:
        raise InputError([Problem(path.name, "is empty")])
    with path.open("rb") as stream:
        is_parquet = stream.read(4) == PARQUET_MAGIC
    try:
        headers = _land_parquet(con, path, spec) if is_parquet else _land_csv(con, path, spec)
    except duckdb.Error as error:
        raise InputError([_reader_problem(path.name, error, is_parquet=is_parquet)]) from error
    if con.execute("SELECT count(*) FROM landed").fetchall() == [(0,)]:
        raise InputError([Problem(path.name, "has a header but no rows")])
    return headers


def _only(path: Path) -> str:
    """SQL literal of exactly this file: DuckDB takes `*`, `?` and `[` for patterns, and `~` for the home folder."""
    return literal(re.sub(r"[*?[]", r"[\g<0>]", str(path.absolute())))


def _land_parquet(con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec) -> list[str]:
    # A folder named `BILLING_PERIOD=2026-05`, as clouds write them, must not become a column.
    source = f"read_parquet({_only(path)}, hive_partitioning = false)"
    described = con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    casts = [f"{_as_text(name, kind, spec)} AS {identifier(name)}" for name, kind, *_ in described]
    con.execute(
        "CREATE OR REPLACE TEMP TABLE landed AS "
        f"SELECT row_number() OVER () AS source_row, {', '.join(casts)} FROM {source}"
    )
    return [str(name) for name, *_ in described]


def _as_text(name: str, kind: str, spec: FileSpec) -> str:
    column = identifier(name)
    if kind == "VARCHAR":
        nulls = ", ".join(literal(text) for text in spec.null_texts)
        return f"CASE WHEN {column} NOT IN ({nulls}) THEN {column} END"
    nested = kind.startswith(("MAP", "STRUCT")) or kind.endswith("[]")
    return f"CAST(to_json({column}) AS VARCHAR)" if nested else f"CAST({column} AS VARCHAR)"


def _land_csv(con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec) -> list[str]:
    headers = _csv_headers(path)
    names = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in headers)
    nulls = ", ".join(literal(text) for text in spec.null_texts)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE landed AS SELECT row_number() OVER () + 1 AS source_row, * FROM read_csv("
        f"{_only(path)}, columns = {{{names}}}, header = true, delim = ',', quote = '\"', escape = '\"', "
        f"nullstr = [{nulls}], allow_quoted_nulls = true, auto_detect = false, strict_mode = true, encoding = 'utf-8', "
        f"compression = 'none', hive_partitioning = false, max_line_size = {MAX_LINE_BYTES})"
    )
    _count_blank_lines(con, path)
    return headers


def _csv_headers(path: Path) -> list[str]:
    # Bytes that are not UTF-8 become lone surrogates, so that only the header row itself is judged here.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        try:
            headers = next(csv.reader(stream, strict=True), [])
            "".join(headers).encode()
        except (UnicodeEncodeError, csv.Error) as error:
            raise InputError([Problem(path.name, "has no readable UTF-8 header row", row=1)]) from error
    if "" in headers or not headers:
        raise InputError([Problem(path.name, "has a column without a name (a comma too many?)", row=1)])
    lowered = [name.lower() for name in headers]
    doubled = sorted({name for name in headers if lowered.count(name.lower()) > 1})
    if doubled:
        raise InputError([Problem(path.name, "appears twice in the header", row=1, column=name) for name in doubled])
    return headers


def _count_blank_lines(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """DuckDB skips blank lines; editors count them. Number the rows again in the rare file that has some."""
    with path.open("rb") as stream:
        ends = re.compile(rb"\n\r?\n|\r\r")
        if not ends.search(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)):
            return
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = [row for row, cells in enumerate(csv.reader(stream), start=1) if cells]
    con.execute("UPDATE landed SET source_row = $rows[source_row]", {"rows": rows})


def _reader_problem(file: str, error: duckdb.Error, *, is_parquet: bool) -> Problem:
    """Turn DuckDB's report of a broken file into one line that keeps the row."""
    text = str(error)
    if is_parquet:
        return Problem(file, "is not a complete Parquet file (cut off or damaged)")
    row = None
    if "CSV Error on Line:" in text:
        digits = text.split("CSV Error on Line:", 1)[1].split(maxsplit=1)[0]
        row = int(digits) if digits.isdigit() else None
    if "reached an invalid state" in text:
        return Problem(file, "is not well-formed CSV: its line ends differ from row to row", row=row)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith(TELLING)), lines[0])
    return Problem(file, f"is not well-formed CSV: {said}", row=row)
