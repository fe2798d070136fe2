"""Which loaded content counts: snapshots of sources, and views that show only the current ones.

A source is one named input (usually a file name). Loading it again replaces what it said before: the newest snapshot of
(kind, source) is current, earlier ones stay for the record. The same content is never counted twice.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from store.sqltext import identifier

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import duckdb

    from store.intake import Staged

NEWEST = """
    SELECT kind, source, snapshot_id, file_sha256, row_count, control_sum, rounded_row_count, loaded_at
    FROM lake.snapshot
    QUALIFY row_number() OVER (PARTITION BY kind, source ORDER BY loaded_at DESC, snapshot_id) = 1
"""
CURRENT = f"""
    SELECT * FROM ({NEWEST})
    QUALIFY row_number() OVER (PARTITION BY kind, snapshot_id ORDER BY loaded_at, source) = 1
"""
"""Two sources may come to hold the same content, when one of them held another before: it counts once."""
KIND_OF: Final = MappingProxyType(
    {
        "node": "inventory",
        "device": "devices",
        "holding": "holdings",
        "demand": "demand",
        "charge": "charges",
        "invoice": "invoices",
        "quota": "quotas",
        "team_rule": "teams",
        "token_usage": "tokens",
    }
)
"""Input table -> the kind of file that feeds it, as `gputally load` names it."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one load did: `outcome` is `loaded`, `replaced` (an earlier content of the source) or `unchanged`."""

    source: str
    snapshot_id: str
    row_count: int
    outcome: str
    same_as: str | None = None
    """For `unchanged`: the source that already holds this content."""


def snapshot_id(kind: str, file_sha256: str, options: Mapping[str, str]) -> str:
    """Name a content: the same bytes read in the same way have the same id on every machine."""
    text = json.dumps([kind, file_sha256, sorted(options.items())], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def land(
    con: duckdb.DuckDBPyConnection,
    *,
    staged: Staged,
    kind: str,
    table: str,
    fields: Sequence[str],
    options: Mapping[str, str],
    control_field: str | None,
) -> Loaded:
    """Write the staged rows as a snapshot of source `staged.file`, inside the caller's write transaction.

    Idempotent: content that is already current is left alone, whatever its file is called; only a source that said
    something else until now is recorded, so that its old content no longer counts.
    """
    identity = snapshot_id(kind, staged.file_sha256, options)
    found = con.execute(f"SELECT source, snapshot_id FROM ({NEWEST}) WHERE kind = ? ORDER BY loaded_at", [kind])
    current: dict[str, str] = dict(found.fetchall())
    holders = [source for source, known in current.items() if known == identity]
    if staged.file in holders or (holders and staged.file not in current):
        return Loaded(staged.file, identity, staged.row_count, "unchanged", holders[0])
    known_content = con.execute("SELECT 1 FROM lake.snapshot WHERE snapshot_id = ?", [identity]).fetchone()
    if not known_content:
        columns = ", ".join(identifier(name) for name in fields)
        con.execute(
            f"INSERT INTO lake.{table} SELECT ?, source_row, {columns} FROM {staged.table} ORDER BY source_row",
            [identity],
        )
    total = f"sum({identifier(control_field)})" if control_field else "NULL"
    con.execute(
        # Later than every load before it, even when the clock was set back since.
        f"INSERT INTO lake.snapshot SELECT ?, ?, ?, ?, ?, count(*), {total}, ?, greatest(now(), "
        f"(SELECT max(loaded_at) + INTERVAL 1 MICROSECOND FROM lake.snapshot)) FROM {staged.table}",
        [
            kind,
            staged.file,
            identity,
            staged.file_sha256,
            json.dumps(dict(options), sort_keys=True),
            staged.rounded_row_count,
        ],
    )
    return Loaded(staged.file, identity, staged.row_count, "replaced" if staged.file in current else "loaded")


def is_current(con: duckdb.DuckDBPyConnection, staged: Staged, kind: str, options: Mapping[str, str]) -> bool:
    """Whether this very content counts already, under whatever name."""
    identity = [kind, snapshot_id(kind, staged.file_sha256, options)]
    query = f"SELECT 1 FROM ({CURRENT}) WHERE kind = ? AND snapshot_id = ?"
    return con.execute(query, identity).fetchone() is not None


def show_current(con: duckdb.DuckDBPyConnection, *, copied: Collection[str] = ()) -> None:
    """Show the current snapshots of each input table under its name (`node`, `charge`, ...), as temporary views.

    Those in `copied` are read once into memory and shown from there: worth it for small ones that many steps read.
    """
    con.execute(f"CREATE OR REPLACE TEMP VIEW current_snapshot AS {CURRENT}")
    for table, kind in KIND_OF.items():
        rows = (
            f"SELECT t.*, s.source AS source_file FROM lake.{table} AS t "
            f"JOIN current_snapshot AS s USING (snapshot_id) WHERE s.kind = '{kind}'"
        )
        if table in copied:
            con.execute(f"CREATE OR REPLACE TEMP TABLE copied_{table} AS {rows}")
            rows = f"FROM copied_{table}"
        con.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS {rows}")
