"""Read one user file (CSV or Parquet), judge every cell, and stage it as a typed temporary table.

Nothing is guessed: every value is read as text and must match its column's type in full, so that a price is never a
float, an id never loses its zeros and a bad cell is named by file, row and column. All problems are collected.
"""

from __future__ import annotations

import csv
import hashlib
import mmap
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import duckdb

from fleet.errors import InputError, Problem, quoted
from store.columns import Column, FileSpec, cell_checks
from store.sqltext import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

MAX_PROBLEMS_PER_COLUMN = 20
MAX_LINE_BYTES = 8 * 1024 * 1024
PARQUET_MAGIC = b"PAR1"
TELLING = ("Expected Number", "Value with unterminated", "Invalid unicode", "Maximum line")
"""How the line of DuckDB's CSV report starts that says what is wrong."""


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
    headers = [name for name in _land_text(con, path, spec) if name not in ignored]
    _check_headers(path.name, headers, spec)
    present = [column for column in spec.columns if column.name in headers]
    problems = _bad_cells(con, path.name, present, spec, zone)
    if problems:
        raise InputError(problems)
    return _to_typed(con, path.name, digest, present, spec, zone)


def _sha256(path: Path) -> str:
    try:
        str(path.absolute()).encode()
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError([Problem(path.name, f"cannot be read: {error.strerror}")]) from error
    except UnicodeEncodeError as error:
        raise InputError([Problem(path.name, "has a name or folder that is not UTF-8: rename it")]) from error


def _land_text(con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec) -> list[str]:
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


def _nearest(name: str, known: Collection[str]) -> str:
    """A known column that is spelt much like `name`, as a question."""
    near = get_close_matches(name.casefold(), [column.casefold() for column in known], n=1, cutoff=0.75)
    meant = next((column for column in known if near and column.casefold() == near[0]), None)
    return f", did you mean {meant}?" if meant else ""


def _check_headers(file: str, headers: Sequence[str], spec: FileSpec) -> None:
    known = {column.name for column in spec.columns} | set(spec.other_columns)
    problems = [
        Problem(file, f"unknown column{_nearest(name, known)}; `--ignore-column` leaves it out", 1, name)
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
    selected = [
        f"{_typed_or_null(column, present, spec.zone or zone)} AS {identifier(column.field)}"
        for column in spec.unique_fields()
    ]
    con.execute(f"CREATE OR REPLACE TEMP TABLE staged AS SELECT source_row, {', '.join(selected)} FROM landed")
    finer = " OR ".join(column.is_finer_than_stored() for column in present if column.kind.is_money) or "false"
    row = con.execute(f"SELECT count(*), count(*) FILTER (WHERE {finer}) FROM landed").fetchone()
    con.execute("DROP TABLE landed")
    count, rounded = row if row else (0, 0)
    return Staged("staged", file, digest, int(count), int(rounded))


def _typed_or_null(wanted: Column, present: Sequence[Column], zone: str | None) -> str:
    """Where several present columns feed the field, the one listed last wins, row by row, if it is filled."""
    found = [column.typed(zone) for column in reversed(present) if column.field == wanted.field]
    return f"coalesce({', '.join(found)})" if found else f"CAST(NULL AS {wanted.kind.sql_type})"
