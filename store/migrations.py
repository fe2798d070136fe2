"""Bring a lake's tables to the schema this version expects: numbered SQL files, each applied once, in order."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from fleet.errors import LakeError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import duckdb

VERSION_TABLE = "schema_version"


def schema_files(folder: Traversable | None = None) -> list[tuple[int, str, str]]:
    """Return (number, name, SQL text) of every schema file, in order; numbers run 1, 2, 3, ... without gaps."""
    folder = folder or resources.files("store") / "schema"
    found = sorted(
        (int(f.name.split("_")[0]), f.name, f.read_text("utf-8")) for f in folder.iterdir() if f.name.endswith(".sql")
    )
    numbers = [number for number, _, _ in found]
    if numbers != list(range(1, len(found) + 1)):
        raise LakeError(f"schema files must be numbered 1, 2, 3, ...: found {numbers}")
    return found


def require_current(con: duckdb.DuckDBPyConnection, folder: Traversable | None = None) -> None:
    """LakeError when a lake that is only read lacks tables of this version; one of a newer program may be read."""
    row = con.execute(f"SELECT coalesce(max(version), 0) FROM lake.{VERSION_TABLE}").fetchone()
    found, known = int(row[0]) if row else 0, len(schema_files(folder))
    if found < known:
        raise LakeError(
            f"this lake has schema {found}, this gputally reads {known}: a command that writes brings it up to date, "
            "such as `gputally maintain --once`"
        )


def migrate(con: duckdb.DuckDBPyConnection, folder: Traversable | None = None) -> list[str]:
    """Apply the schema files that this lake has not seen, inside the caller's transaction; return their names.

    Raises LakeError when the lake was written by a newer version: an old program must not write to a new schema.
    """
    con.execute(
        f"CREATE TABLE IF NOT EXISTS lake.{VERSION_TABLE} (version INTEGER, name VARCHAR, applied_at TIMESTAMPTZ)"
    )
    row = con.execute(f"SELECT coalesce(max(version), 0) FROM lake.{VERSION_TABLE}").fetchone()
    current = int(row[0]) if row else 0
    files = schema_files(folder)
    if current > len(files):
        raise LakeError(f"this lake has schema {current}, this gputally knows {len(files)}: upgrade gputally")
    applied = []
    for number, name, text in files[current:]:
        con.execute(text)
        con.execute(f"INSERT INTO lake.{VERSION_TABLE} VALUES (?, ?, now())", [number, name])
        applied.append(name)
    return applied
