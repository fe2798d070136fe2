"""Read one user file (CSV or Parquet), judge every cell, and stage it as a typed temporary table.

Nothing is guessed: a text must match its column's type in full, and what a Parquet file holds in a type of its own must
fit it, so that a price is never a float, an id never loses its zeros and a bad cell is named by file, row and column.
All problems are collected.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

from fleet.errors import InputError, Problem, quoted
from fleet.period import zone_named
from store.columns import Cell, Column, FileSpec, Kind, text_cell
from store.landing import ZONE_COLUMN, Landed, land, told
from store.native import native_cell
from store.sqltext import identifier

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    import duckdb

Present: TypeAlias = tuple[Column, Cell]
MAX_PROBLEMS_PER_COLUMN = 20
BAD, ROUNDED = "?bad", "?rounded"
"""Columns beside the staged ones while a file is judged; no field has such a name."""


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
    landed = land(con, path, spec)
    headers = [name for name in landed.headers if name not in ignored]
    _check_headers(path.name, headers, spec)
    with told(path):
        if ZONE_COLUMN in headers:
            zone = _stated_zone(con, path.name, landed, zone)
        present = [
            (column, _cell(column, landed, spec.zone or zone)) for column in spec.columns if column.name in headers
        ]
        if not _convert(con, landed, present, spec):
            raise InputError(_problems(con, path.name, landed, present, spec))
        counts = _accept(con)
    return Staged("staged", path.name, digest, *counts)


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


def _stated_zone(con: duckdb.DuckDBPyConnection, file: str, landed: Landed, zone: str | None) -> str:
    """The zone that the file names. InputError unless it is one, the same everywhere, and no other was asked for."""
    found = con.execute(
        f"SELECT {ZONE_COLUMN}, min(source_row) FROM {landed.relation} GROUP BY 1 ORDER BY 2 LIMIT 2"
    ).fetchall()
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


def _cell(column: Column, landed: Landed, zone: str | None) -> Cell:
    kept = landed.types.get(column.name)
    return (native_cell(column, kept, zone) if kept else None) or text_cell(column, zone)


def _convert(con: duckdb.DuckDBPyConnection, landed: Landed, present: Sequence[Present], spec: FileSpec) -> bool:
    """Create `staged` from the landed file, reading each cell once; return whether no cell is bad.

    Which one is, is found out only then.
    """
    fields = [f"{_value(wanted, present)} AS {identifier(wanted.field)}" for wanted in spec.unique_fields()]
    bad = " OR ".join([f"({bad})" for bad, *_ in _checks(present, spec)] or ["false"])
    rounded = " OR ".join([f"({cell.is_rounded})" for _, cell in present if cell.is_rounded] or ["false"])
    flags = [f"coalesce({bad}, false) AS {identifier(BAD)}", f"coalesce({rounded}, false) AS {identifier(ROUNDED)}"]
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE staged AS SELECT source_row, {', '.join(fields + flags)} FROM {landed.relation}"
    )
    return con.execute(f"SELECT 1 FROM staged WHERE {identifier(BAD)} LIMIT 1").fetchone() is None


def _value(wanted: Column, present: Sequence[Present]) -> str:
    """Where several present columns feed the field, the one listed last wins, row by row, if it is filled."""
    found = [cell.value for column, cell in reversed(present) if column.field == wanted.field]
    return f"coalesce({', '.join(found)})" if found else f"CAST(NULL AS {wanted.kind.sql_type})"


def _accept(con: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """Leave only the fields in `staged`; return how many rows there are, and how many with rounded money."""
    ((count, rounded),) = con.execute(
        f"SELECT count(*), count(*) FILTER (WHERE {identifier(ROUNDED)}) FROM staged"
    ).fetchall()
    for flag in (BAD, ROUNDED):
        con.execute(f"ALTER TABLE staged DROP COLUMN {identifier(flag)}")
    con.execute("DROP TABLE IF EXISTS landed")
    return int(count), int(rounded)


def _checks(present: Sequence[Present], spec: FileSpec) -> list[tuple[str, str, str | None, str]]:
    """Predicate of a bad row, message, column to name, and the SQL of what to show of it."""
    checks: list[tuple[str, str, str | None, str]] = [
        (bad, message, column.name, f"CAST({identifier(column.name)} AS VARCHAR)")
        for column, cell in present
        for bad, message in cell.checks
    ]
    given = [f"({identifier(name)} IS NOT NULL)::INT" for name in spec.one_of if name in {c.name for c, _ in present}]
    if given:
        message = f"exactly one of {', '.join(spec.one_of)} must be given, found"
        checks.append((f"{' + '.join(given)} <> 1", message, None, " + ".join(given)))
    return checks


def _problems(
    con: duckdb.DuckDBPyConnection, file: str, landed: Landed, present: Sequence[Present], spec: FileSpec
) -> list[Problem]:
    """The first problems of each check, in the order of the file."""
    checks = _checks(present, spec)
    any_bad = ", ".join(f"bool_or({bad})" for bad, *_ in checks)
    (found,) = con.execute(f"SELECT {any_bad} FROM {landed.relation}").fetchall()
    problems: list[Problem] = []
    for is_broken, (bad, message, column, shown) in zip(found, checks, strict=True):
        if not is_broken:
            continue
        rows = con.execute(
            f"SELECT source_row, {shown} FROM {landed.relation} WHERE {bad} ORDER BY 1 LIMIT {MAX_PROBLEMS_PER_COLUMN}"
        ).fetchall()
        problems += [Problem(file, _said(message, value, column), row, column) for row, value in rows]
    return sorted(problems, key=lambda problem: (problem.row or 0, problem.column or ""))


def _said(message: str, value: object, column: str | None) -> str:
    if column is None:
        return f"{message} {value}"
    return message if value is None else f"{quoted(str(value))} {message}"
