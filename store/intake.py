"""Read one user file (CSV or Parquet), judge every cell, and stage it as a typed temporary table.

Nothing is guessed: every value is read as text and must match its column's type in full, so that a price is never a
float, an id never loses its zeros and a bad cell is named by file, row and column. All problems are collected.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from fleet.errors import InputError, Problem, quoted
from fleet.period import zone_named
from store.columns import Column, FileSpec, Kind, cell_checks
from store.landing import land_text
from store.sqltext import identifier

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    import duckdb

MAX_PROBLEMS_PER_COLUMN = 20
ZONE_COLUMN = "time_zone"
"""A file may name the zone of its own times in a column of this name: one IANA zone, the same in every row."""


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

    `zone` reads times that carry no zone, unless the file names its own in a column `time_zone`; without either such a
    time is an error. `ignored` names columns to leave out.
    Raises InputError with every problem found; row 1 is a CSV's header, so row numbers match an editor's.
    """
    digest = file_sha256(path)
    headers = [name for name in land_text(con, path, spec) if name not in ignored]
    _check_headers(path.name, headers, spec)
    present = [column for column in spec.columns if column.name in headers]
    if ZONE_COLUMN in headers:
        zone = _stated_zone(con, path.name, zone)
    problems = _bad_cells(con, path.name, present, spec, zone)
    if problems:
        raise InputError(problems)
    return _to_typed(con, path.name, digest, present, spec, zone)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes; InputError when it cannot be read or its name is no UTF-8."""
    try:
        str(path.absolute()).encode()
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError([Problem(path.name, f"cannot be read: {error.strerror}")]) from error
    except UnicodeEncodeError as error:
        raise InputError([Problem(path.name, "has a name or folder that is not UTF-8: rename it")]) from error


def _stated_zone(con: duckdb.DuckDBPyConnection, file: str, zone: str | None) -> str:
    """The zone that the file names. InputError unless it is one, the same everywhere, and no other was asked for."""
    found = con.execute(f"SELECT {ZONE_COLUMN}, min(source_row) FROM landed GROUP BY 1 ORDER BY 2 LIMIT 2").fetchall()
    stated, row = found[-1]
    try:
        zone_named(stated or "")
    except ValueError as error:
        raise InputError([Problem(file, str(error), row, ZONE_COLUMN)]) from error
    if len(found) > 1 or zone not in (None, stated):
        other = found[0][0] if len(found) > 1 else f"--time-zone {zone}"
        message = f"{quoted(stated)} is another zone than {quoted(str(other))}"
        raise InputError([Problem(file, message, row, ZONE_COLUMN)])
    return str(stated)


def _nearest(name: str, known: Collection[str]) -> str:
    """A known column that is spelt much like `name`, as a question."""
    near = get_close_matches(name.casefold(), [column.casefold() for column in known], n=1, cutoff=0.75)
    meant = next((column for column in known if near and column.casefold() == near[0]), None)
    return f", did you mean {meant}?" if meant else ""


def _check_headers(file: str, headers: Sequence[str], spec: FileSpec) -> None:
    known = {column.name for column in spec.columns} | set(spec.other_columns)
    if any(column.kind is Kind.TIME for column in spec.columns) and not spec.zone:
        known.add(ZONE_COLUMN)
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
