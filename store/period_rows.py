"""Rows of one period in the lake's tables: replace them, show them, compare them with a fresh result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.sqltext import identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.lake import Connection


def replace_rows(con: Connection, table: str, query: str, values: Mapping[str, Any], *, period: str) -> None:
    """Delete a period's rows of a lake table and insert those of `query`, matched by column name.

    Runs inside a write transaction. Rows are stored in the order in which they are looked up.
    """
    columns = [str(row[0]) for row in con.execute(f"DESCRIBE lake.{identifier(table)}").fetchall()]
    order = next((name for name in ("hour_start", "team", "pool") if name in columns), columns[0])
    names = ", ".join(identifier(name) for name in columns)
    con.execute(f"DELETE FROM lake.{identifier(table)} WHERE period = ?", [period])
    con.execute(
        f"INSERT INTO lake.{identifier(table)} BY NAME SELECT {names} FROM ({query}\n) ORDER BY {identifier(order)}",
        values,
    )


def differing_rows(con: Connection, table: str, query: str, values: Mapping[str, Any], *, period: str) -> int:
    """How many rows a period of a lake table and the rows of `query` do not have in common, counting repeats."""
    name = identifier(table)
    columns = ", ".join(identifier(str(row[0])) for row in con.execute(f"DESCRIBE lake.{name}").fetchall())
    fresh, stored = (
        f"SELECT {columns} FROM ({query}\n)",
        f"SELECT {columns} FROM lake.{name} WHERE period = $same_period",
    )
    row = con.execute(
        f"SELECT count(*) FROM (({fresh} EXCEPT ALL {stored}) UNION ALL ({stored} EXCEPT ALL {fresh}))",
        {**values, "same_period": period},
    ).fetchone()
    return int(row[0]) if row else 0


def show_rows(con: Connection, table: str, *, period: str) -> None:
    """Copy a period's rows of a lake table into the temporary table of the same name, replacing it."""
    name = identifier(table)
    con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM lake.{name} WHERE period = ?", [period])
