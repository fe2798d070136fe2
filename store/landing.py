"""Read a CSV, Parquet or JSON lines file: nothing is guessed before a cell has been judged.

CSV, plain or gzip, is text. Of Parquet those columns keep their type that can be judged by it.
"""

from __future__ import annotations

import csv
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import TYPE_CHECKING

import duckdb

from fleet.errors import InputError, Problem
from store.gzipped import CUT_OFF, GZIP_ERRORS, is_gzip, opened
from store.landing_json import is_json_lines, land_json_lines
from store.native import native_cell
from store.sqltext import identifier, literal, only_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from store.columns import FileSpec

MAX_LINE_BYTES = 8 * 1024 * 1024
BLOCK_BYTES = 1024 * 1024
ZONE_COLUMN = "time_zone"
"""A file may name the zone of its own times in a column of this name: one IANA zone, the same in every row."""
PARQUET_MAGIC = b"PAR1"
TELLING = ("Expected Number", "Value with unterminated", "Invalid unicode", "Maximum line")
"""How the line of DuckDB's CSV report starts that says what is wrong."""


@dataclass(frozen=True, slots=True)
class Landed:
    """A file as a relation: `source_row` and its columns, as text unless `types` says otherwise."""

    headers: tuple[str, ...]
    relation: str = "landed"
    """What to read FROM, in SQL. A Parquet file is read where it lies, and only the columns that are asked for."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Columns of a Parquet file that keep the type that they have there, in DuckDB's words."""


def land(con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec, *, texts: Collection[str] = ()) -> Landed:
    """Find the columns and rows of a file. Of Parquet the columns of `spec` can be read, and `texts`, which are text.

    InputError when it cannot be read or has no rows. What is damaged far inside a Parquet file comes to light when the
    relation is read: do so in `told`.
    """
    if path.stat().st_size == 0:
        raise InputError([Problem(path.name, "is empty")])
    if is_json_lines(path):
        return Landed(tuple(land_json_lines(con, path, spec)))
    with told(path):
        landed = _land_parquet(con, path, spec, texts) if _is_parquet(path) else _land_csv(con, path, spec)
        if con.execute(f"SELECT count(*) FROM {landed.relation}").fetchall() == [(0,)]:
            raise InputError([Problem(path.name, "has a header but no rows")])
    return landed


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Tell as the file's problem what DuckDB reports of it."""
    try:
        yield
    except (
        duckdb.OutOfMemoryException,
        duckdb.ConversionException,
        duckdb.OutOfRangeException,
        duckdb.BinderException,
    ):
        raise  # the machine's fault or ours
    except duckdb.Error as error:
        raise InputError([_reader_problem(path.name, error, is_parquet=_is_parquet(path))]) from error


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == PARQUET_MAGIC


def _land_parquet(con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec, texts: Collection[str]) -> Landed:
    # A folder named `BILLING_PERIOD=2026-05`, as clouds write them, must not become a column.
    source = f"read_parquet({only_file(path)}, hive_partitioning = false)"
    types = {str(name): str(kind) for name, kind, *_ in con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    known = {ZONE_COLUMN, *texts, *(column.name for column in spec.columns)}
    judged = [column for column in spec.columns if column.name in types]
    no_native = {column.name for column in judged if native_cell(column, types[column.name], None) is None}
    native = {name: types[name] for name in {column.name for column in judged} - no_native - set(texts)}
    columns = "".join(
        f", {identifier(name) if name in native else _as_text(name, kind, spec)} AS {identifier(name)}"
        for name, kind in types.items()
        if name in known
    )
    # DuckDB counts the rows of a Parquet file under this name, unless the file has a column of this name.
    is_taken = "file_row_number" in map(str.lower, types)
    row = "row_number() OVER ()" if is_taken else "file_row_number + 1"
    return Landed(tuple(types), f"(SELECT {row} AS source_row{columns} FROM {source})", native)


def _as_text(name: str, kind: str, spec: FileSpec) -> str:
    column = identifier(name)
    if kind == "VARCHAR":
        nulls = ", ".join(literal(text) for text in spec.null_texts)
        return f"CASE WHEN {column} NOT IN ({nulls}) THEN {column} END"
    nested = kind.startswith(("MAP", "STRUCT")) or kind.endswith("[]")
    return f"CAST(to_json({column}) AS VARCHAR)" if nested else f"CAST({column} AS VARCHAR)"


def _land_csv(con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec) -> Landed:
    try:
        headers, has_blank_lines = _csv_headers(path), _has_blank_lines(path)
    except GZIP_ERRORS as error:  # DuckDB takes a gzip file that lacks its end
        raise InputError([Problem(path.name, CUT_OFF)]) from error
    names = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in headers)
    nulls = ", ".join(literal(text) for text in spec.null_texts)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE landed AS SELECT row_number() OVER () + 1 AS source_row, * FROM read_csv("
        f"{only_file(path)}, columns = {{{names}}}, header = true, delim = ',', quote = '\"', escape = '\"', "
        f"nullstr = [{nulls}], allow_quoted_nulls = true, auto_detect = false, strict_mode = true, encoding = 'utf-8', "
        f"compression = '{'gzip' if is_gzip(path) else 'none'}', hive_partitioning = false, "
        f"max_line_size = {MAX_LINE_BYTES})"
    )
    if has_blank_lines:
        _count_blank_lines(con, path)
    return Landed(tuple(headers))


def _csv_headers(path: Path) -> list[str]:
    # Bytes that are not UTF-8 become lone surrogates, so that only the header row itself is judged here.
    with TextIOWrapper(opened(path), "utf-8-sig", "surrogateescape", newline="") as stream:
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


def _has_blank_lines(path: Path) -> bool:
    """Whether two line ends follow each other. Reads a gzip file to its end, which proves that it is whole."""
    ends, end, found = re.compile(rb"\n\r?\n|\r\r"), b"", False
    with opened(path) as stream:
        while block := stream.read(BLOCK_BYTES):
            found = found or ends.search(end + block) is not None
            end = block[-2:]
    return found


def _count_blank_lines(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """DuckDB skips blank lines; editors count them. Number the rows again in the rare file that has some."""
    with TextIOWrapper(opened(path), "utf-8-sig", newline="") as stream:
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
