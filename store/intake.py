"""Read one user file (CSV or Parquet), judge every cell, and stage it as a typed temporary table.

Nothing is guessed: every value is read as text and must match its column's type in full, so that a price is never a
float, an id never loses its zeros and a bad cell is named by file, row and column. All problems are collected.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from fleet.errors import InputError, Problem, quoted
from store.columns import Column, FileSpec, cell_checks
from store.sqltext import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_PROBLEMS_PER_COLUMN = 20
PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class Staged:
    """A file that passed every cell check and lies in the temporary table `table` (typed, with `source_row`)."""

    table: str
    file: str
    file_sha256: str
    row_count: int
    rounded_row_count: int
    """Rows with money finer than 12 decimals, rounded there (some providers export float artefacts)."""


def stage(
    con: duckdb.DuckDBPyConnection,
    path: Path,
    spec: FileSpec,
    *,
    zone: str | None = None,
    ignored: Sequence[str] = (),
) -> Staged:
    """Stage `path` as temporary table `staged`, replacing the previous one.

    `zone` reads times that carry no zone; without it such a time is an error. `ignored` names columns to leave out.
    Raises InputError with every problem found; row 1 is a CSV's header, so row numbers match an editor's.
    """
    digest = _sha256(path)
    headers = _land_text(con, path, spec)
    _check_headers(path.name, headers, spec, ignored)
    present = [column for column in spec.columns if column.name in headers]
    problems = _bad_cells(con, path.name, present, spec, zone)
    if problems:
        raise InputError(problems)
    return _to_typed(con, path.name, digest, present, spec, zone)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError([Problem(path.name, f"cannot be read: {error.strerror}")]) from error


def _land_text(con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec) -> list[str]:
    """Create temporary table `landed`: every column as text, plus `source_row`; return the file's column names."""
    if path.stat().st_size == 0:
        raise InputError([Problem(path.name, "is empty")])
    with path.open("rb") as stream:
        is_parquet = stream.read(4) == PARQUET_MAGIC
    try:
        headers = _land_parquet(con, path) if is_parquet else _land_csv(con, path, spec)
    except duckdb.Error as error:
        raise InputError([_reader_problem(path.name, error, is_parquet=is_parquet)]) from error
    if con.execute("SELECT count(*) FROM landed").fetchall() == [(0,)]:
        raise InputError([Problem(path.name, "has a header but no rows")])
    return headers


def _land_parquet(con: duckdb.DuckDBPyConnection, path: Path) -> list[str]:
    source = f"read_parquet({literal(str(path))})"
    described = con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    casts = [f"{_as_text(name, kind)} AS {identifier(name)}" for name, kind, *_ in described]
    con.execute(
        "CREATE OR REPLACE TEMP TABLE landed AS "
        f"SELECT row_number() OVER () AS source_row, {', '.join(casts)} FROM {source}"
    )
    return [str(name) for name, *_ in described]


def _as_text(name: str, kind: str) -> str:
    nested = kind.startswith(("MAP", "STRUCT")) or kind.endswith("[]")
    return f"CAST(to_json({identifier(name)}) AS VARCHAR)" if nested else f"CAST({identifier(name)} AS VARCHAR)"


def _land_csv(con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            headers = next(csv.reader(stream, strict=True))
    except (UnicodeDecodeError, csv.Error, StopIteration) as error:
        raise InputError([Problem(path.name, f"has no readable UTF-8 header row: {error}")]) from error
    doubled = sorted({name for name in headers if headers.count(name) > 1})
    if doubled:
        raise InputError([Problem(path.name, "appears twice in the header", row=1, column=name) for name in doubled])
    names = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in headers)
    nulls = ", ".join(literal(text) for text in spec.null_texts)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE landed AS SELECT row_number() OVER () + 1 AS source_row, * FROM read_csv("
        f"{literal(str(path))}, columns = {{{names}}}, header = true, delim = ',', quote = '\"', escape = '\"', "
        f"nullstr = [{nulls}], allow_quoted_nulls = true, auto_detect = false, strict_mode = true, encoding = 'utf-8')"
    )
    return headers


def _reader_problem(file: str, error: duckdb.Error, *, is_parquet: bool) -> Problem:
    """Turn DuckDB's report of a broken file into one line that keeps the row."""
    text = str(error)
    if is_parquet:
        return Problem(file, "is not a complete Parquet file (cut off or damaged)")
    row = None
    if "CSV Error on Line:" in text:
        digits = text.split("CSV Error on Line:", 1)[1].split(maxsplit=1)[0]
        row = int(digits) if digits.isdigit() else None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next(
        (line for line in lines if line.startswith(("Expected Number", "Value with unterminated", "Invalid unicode"))),
        lines[0],
    )
    return Problem(file, f"is not well-formed CSV: {said}", row=row)


def _check_headers(file: str, headers: Sequence[str], spec: FileSpec, ignored: Sequence[str]) -> None:
    known = {column.name for column in spec.columns} | set(spec.other_columns) | set(ignored)
    problems = [
        Problem(
            file,
            f"unknown column (known: {spec.known_names()}); `--ignore-column {quoted(name)}` leaves it out",
            1,
            name,
        )
        for name in headers
        if name not in known and not name.startswith(spec.custom_prefixes)
    ]
    problems += [
        Problem(file, "required column is missing", 1, column.name)
        for column in spec.columns
        if column.required and column.name not in headers
    ]
    if spec.one_of and not set(spec.one_of) & set(headers):
        problems.append(Problem(file, f"one of the columns {', '.join(spec.one_of)} is required", 1))
    if problems:
        raise InputError(problems)


def _bad_cells(
    con: duckdb.DuckDBPyConnection, file: str, present: Sequence[Column], spec: FileSpec, zone: str | None
) -> list[Problem]:
    problems: list[Problem] = []
    for column in present:
        for bad_sql, message in cell_checks(column, spec.zone or zone):
            rows = con.execute(
                f"SELECT source_row, {identifier(column.name)} FROM landed WHERE {bad_sql} "
                f"ORDER BY 1 LIMIT {MAX_PROBLEMS_PER_COLUMN}"
            ).fetchall()
            problems += [
                Problem(file, message if value is None else f"{quoted(value)} {message}", row, column.name)
                for row, value in rows
            ]
    problems += _bad_rows(con, file, spec, {column.name for column in present})
    return sorted(problems, key=lambda problem: (problem.row or 0, problem.column or ""))


def _bad_rows(con: duckdb.DuckDBPyConnection, file: str, spec: FileSpec, present: set[str]) -> list[Problem]:
    names = [name for name in spec.one_of if name in present]
    if not names:
        return []
    given = " + ".join(f"({identifier(name)} IS NOT NULL)::INT" for name in names)
    rows = con.execute(
        f"SELECT source_row, {given} FROM landed WHERE {given} <> 1 ORDER BY 1 LIMIT {MAX_PROBLEMS_PER_COLUMN}"
    ).fetchall()
    return [
        Problem(file, f"exactly one of {', '.join(spec.one_of)} must be given, found {count}", row)
        for row, count in rows
    ]


def _to_typed(
    con: duckdb.DuckDBPyConnection,
    file: str,
    digest: str,
    present: Sequence[Column],
    spec: FileSpec,
    zone: str | None,
) -> Staged:
    by_field = {column.field: column for column in present}
    selected = [
        f"{_typed_or_null(column, by_field.get(column.field), spec.zone or zone)} AS {identifier(column.field)}"
        for column in spec.unique_fields()
    ]
    con.execute(f"CREATE OR REPLACE TEMP TABLE staged AS SELECT source_row, {', '.join(selected)} FROM landed")
    finer = " OR ".join(column.is_finer_than_stored() for column in present if column.kind.is_money) or "false"
    row = con.execute(f"SELECT count(*), count(*) FILTER (WHERE {finer}) FROM landed").fetchone()
    con.execute("DROP TABLE landed")
    count, rounded = row if row else (0, 0)
    return Staged("staged", file, digest, int(count), int(rounded))


def _typed_or_null(wanted: Column, found: Column | None, zone: str | None) -> str:
    return found.typed(zone) if found else f"CAST(NULL AS {wanted.kind.sql_type})"
