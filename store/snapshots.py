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
    from collections.abc import Mapping, Sequence

    import duckdb

    from store.intake import Staged

CURRENT = """
    SELECT kind, source, snapshot_id, file_sha256, row_count, control_sum, rounded_row_count, loaded_at
    FROM lake.snapshot
    QUALIFY row_number() OVER (PARTITION BY kind, source ORDER BY loaded_at DESC, snapshot_id) = 1
"""
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

    Idempotent: content that is already current is left alone, whatever its file is called.
    """
    identity = snapshot_id(kind, staged.file_sha256, options)
    current = con.execute(f"SELECT source, snapshot_id FROM ({CURRENT}) WHERE kind = ?", [kind]).fetchall()
    for source, known in current:
        if known == identity:
            return Loaded(staged.file, identity, staged.row_count, "unchanged", source)
    known_content = con.execute("SELECT 1 FROM lake.snapshot WHERE snapshot_id = ?", [identity]).fetchone()
    if not known_content:
        columns = ", ".join(identifier(name) for name in fields)
        con.execute(
            f"INSERT INTO lake.{table} SELECT ?, source_row, {columns} FROM {staged.table} ORDER BY source_row",
            [identity],
        )
    total = f"sum({identifier(control_field)})" if control_field else "NULL"
    con.execute(
        f"INSERT INTO lake.snapshot SELECT ?, ?, ?, ?, ?, count(*), {total}, ?, now() FROM {staged.table}",
        [
            kind,
            staged.file,
            identity,
            staged.file_sha256,
            json.dumps(dict(options), sort_keys=True),
            staged.rounded_row_count,
        ],
    )
    replaced = any(source == staged.file for source, _ in current)
    return Loaded(staged.file, identity, staged.row_count, "replaced" if replaced else "loaded")


def show_current(con: duckdb.DuckDBPyConnection) -> None:
    """Create temporary views named like the input tables (`node`, `charge`, ...) that show current snapshots only."""
    con.execute(f"CREATE OR REPLACE TEMP VIEW current_snapshot AS {CURRENT}")
    for table, kind in KIND_OF.items():
        con.execute(
            f"CREATE OR REPLACE TEMP VIEW {table} AS SELECT t.*, s.source AS source_file FROM lake.{table} AS t "
            f"JOIN current_snapshot AS s USING (snapshot_id) WHERE s.kind = '{kind}'"
        )
