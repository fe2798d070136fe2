"""FOCUS files of the tests, and what staging makes of one without a lake on disk."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargeback.sources.focus import exports
from chargeback.sources.intake import ChargeOptions, stage_export
from chargeback.sources.judging import broken_identities
from tests.chargeback.ledger import write_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from chargeback.sources.judging import Broken
    from store.lake import Connection

FOCUS_FILES = Path(__file__).parents[2] / "fixtures" / "billing" / "focus"
FEBRUARY = {"ChargePeriodStart": "2026-02-01T00:00:00Z", "ChargePeriodEnd": "2026-02-01T01:00:00Z"}


def unpacked(folder: Path, name: str) -> Path:
    """A packed fixture as the CSV that it holds."""
    path = folder / f"{name}.csv"
    path.write_bytes(gzip.decompress((FOCUS_FILES / f"{name}.csv.gz").read_bytes()))
    return path


def staged(con: Connection, path: Path) -> tuple[Broken, ...]:
    """Stage a FOCUS file as `staged_charge` and return the identities that it breaks."""
    (export,) = exports(con, [path])
    stage_export(con, export, ChargeOptions())
    return broken_identities(con)


def staged_rows(con: Connection, path: Path, rows: Iterable[Mapping[str, str]]) -> tuple[Broken, ...]:
    """The same for rows of February 2026, with the columns that every file repeats filled in."""
    return staged(con, write_rows(path, "charges", [FEBRUARY | {"BilledCost": "1"} | dict(row) for row in rows]))


def column(con: Connection, name: str) -> list[Any]:
    """One column of what was staged, in the order of the file."""
    found = con.sql("FROM staged_charge").order("source_row").select(name).fetchall()
    return [value for (value,) in found]
