"""The invariants of the ledger, one SQL file each: a check passes when its query returns no row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.sqlfile import SqlFile, package_files, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.lake import Connection

SHOWN_ROWS = 3


def check_files() -> list[SqlFile]:
    """Every check, by name."""
    return package_files("chargeback", "checks")


def failed_checks(con: Connection, values: Mapping[str, Any], *, strict: bool) -> list[tuple[str, int, str]]:
    """Run the checks of tier `always`, and with `strict` those of tier `strict` too.

    Returns (name, number of offending rows, the first of them as text) for each that fails.
    """
    failures = []
    for file in check_files():
        if file.header["Tier"] == "always" or strict:
            columns, rows = rows_of(con, file, values)
            if rows:
                failures.append((file.name, len(rows), "; ".join(_shown(columns, row) for row in rows[:SHOWN_ROWS])))
    return failures


def _shown(columns: list[str], row: tuple[Any, ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(columns, row, strict=True) if value is not None)
