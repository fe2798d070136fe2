"""Hold staged charges to the identities of billing: what is found, and whether the delivery may count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from fleet.errors import quoted
from store.snapshots import Finding
from store.sqlfile import SqlFile, first_rows, package_files

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from store.lake import Connection

Severity = Literal["error", "warn", "info"]
SHOWN_ROWS = 20
"""Rows of a finding that are kept by name; the others are counted."""


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """One row that breaks an identity, in the words of the file it came from."""

    source_row: int
    column: str | None
    message: str
    part: str | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """An identity that some rows of a delivery break: the first of them, and how many there are."""

    identity: str
    severity: Severity
    row_count: int
    rows: tuple[BrokenRow, ...]


def identity_files() -> list[SqlFile]:
    """Every identity, in the order of their numbers."""
    return package_files("chargeback", "identities")


def broken_identities(con: Connection, accepted: Collection[str] = ()) -> tuple[Broken, ...]:
    """What `staged_charge` breaks; identities in `accepted` are looked at and shown, but no longer refuse anything."""
    found = []
    for file in identity_files():
        identity = file.header["Identity"]
        rows, count = first_rows(con, file, "source_row", SHOWN_ROWS)
        if rows:
            severity = "warn" if identity in accepted else file.header["Severity"]
            found.append(Broken(identity, cast("Severity", severity), count, _placed(con, rows)))
    return tuple(found)


def _placed(con: Connection, rows: Sequence[tuple[int, str | None, object, str]]) -> tuple[BrokenRow, ...]:
    """Broken rows by their places in the files that they came from."""
    found = con.execute(
        "SELECT source_row, part, part_row FROM staged_charge WHERE source_row IN (SELECT unnest(?))",
        [[row[0] for row in rows]],
    ).fetchall()
    places = {source_row: (part, part_row) for source_row, part, part_row in found}
    broken = []
    for source_row, column, value, message in rows:
        part, part_row = places.get(source_row, (None, None))
        shown = None if value is None else str(value)
        broken.append(BrokenRow(part_row or source_row, column, message, part, shown))
    return tuple(broken)


def sentence(row: BrokenRow) -> str:
    """A broken row as a message that follows its place."""
    return row.message if row.value is None else f"{quoted(row.value)} {row.message}"


def findings_of(broken: Sequence[Broken]) -> list[Finding]:
    """What was found, as the lake keeps it: one row for each row that is shown."""
    return [
        Finding(
            found.identity,
            found.severity,
            found.row_count,
            row.part,
            row.source_row,
            row.column,
            row.value,
            row.message,
        )
        for found in broken
        for row in found.rows
    ]
