"""Which loaded content counts: snapshots of sources, and views that show only the current ones.

A source is one named input (usually a file name). Loading it again replaces what it said before: the newest snapshot of
(kind, source) is current, earlier ones stay for the record. The same content is never counted twice.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from store.sqltext import identifier

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import duckdb

    from store.intake import Staged

SORTED_RUN_ROWS: Final = 10_000
"""Rows of a table that lie in so long sorted runs, on average, are not sorted again."""
NEWEST = """
    SELECT kind, source, snapshot_id, file_sha256, row_count, control_sum, rounded_row_count, loaded_at
    FROM lake.snapshot
    WHERE coalesce(status, 'accepted') = 'accepted'
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
        "commitment": "commitments",
        "asset": "assets",
        "exchange_rate": "rates",
        "list_price": "prices",
        "reservation_use": "reservations",
    }
)
"""Input table -> the kind of file that feeds it, as `gputally load` names it."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where a source of several files comes from."""

    provider: str
    export_name: str | None = None
    period: str | None = None
    execution_id: str | None = None


class Finding(NamedTuple):
    """A row that breaks an identity, and how many there are of its kind."""

    identity: str
    severity: str
    row_count: int
    part: str | None
    source_row: int
    column_name: str | None
    value: str | None
    message: str


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
    fields: Sequence[str] | None,
    options: Mapping[str, str],
    control_field: str | None,
    delivery: Delivery | None = None,
    findings: Sequence[Finding] = (),
) -> Loaded:
    """Write the staged rows as a snapshot of source `staged.file`, inside the caller's write transaction.

    `fields` are the columns to write; None = all that were staged. Idempotent: content that is already current is left
    alone, whatever its file is called; only a source that said something else until now is recorded, so that its old
    content no longer counts.
    """
    identity = snapshot_id(kind, staged.file_sha256, options)
    found = con.execute(f"SELECT source, snapshot_id FROM ({NEWEST}) WHERE kind = ? ORDER BY loaded_at", [kind])
    current: dict[str, str] = dict(found.fetchall())
    holders = [source for source, known in current.items() if known == identity]
    if staged.file in holders or (holders and staged.file not in current):
        return Loaded(staged.file, identity, staged.row_count, "unchanged", holders[0])
    if not _statuses(con, identity) & {None, "accepted"}:
        columns = "*" if fields is None else ", ".join(["source_row", *map(identifier, fields)])
        order = "" if _is_in_order(con, staged) else " ORDER BY source_row"
        con.execute(
            f"INSERT INTO lake.{table} BY NAME SELECT ? AS snapshot_id, {columns} FROM {staged.table}{order}",
            [identity],
        )
        _note(con, identity, staged.file, findings)
    _record(con, staged, kind, identity, options, delivery, "accepted", _control_sum(con, staged, control_field))
    return Loaded(staged.file, identity, staged.row_count, "replaced" if staged.file in current else "loaded")


def quarantine(
    con: duckdb.DuckDBPyConnection,
    *,
    staged: Staged,
    kind: str,
    options: Mapping[str, str],
    delivery: Delivery,
    findings: Sequence[Finding],
) -> None:
    """Record that a content was refused, and why: it never counts, and what the source said before stays current."""
    identity = snapshot_id(kind, staged.file_sha256, options)
    if "quarantined" in _statuses(con, identity):
        return
    _note(con, identity, staged.file, findings)
    _record(con, staged, kind, identity, options, delivery, "quarantined", None)


def _is_in_order(con: duckdb.DuckDBPyConnection, staged: Staged) -> bool:
    """Whether the staged rows lie in the order of their file, or nearly: then to sort them, which takes long, is idle.

    Several threads may leave a few long runs; what is read is ordered by whoever reads it.
    """
    steps = f"SELECT source_row - lag(source_row) OVER () AS step FROM {staged.table}"
    ((rows, breaks),) = con.execute(f"SELECT count(*), count(*) FILTER (WHERE step < 0) FROM ({steps})").fetchall()
    return bool(breaks * SORTED_RUN_ROWS <= rows)


def _statuses(con: duckdb.DuckDBPyConnection, identity: str) -> set[str | None]:
    found = con.execute("SELECT DISTINCT status FROM lake.snapshot WHERE snapshot_id = ?", [identity]).fetchall()
    return {status for (status,) in found}


def _control_sum(con: duckdb.DuckDBPyConnection, staged: Staged, field: str | None) -> object:
    if field is None:
        return None
    ((total,),) = con.execute(f"SELECT sum({identifier(field)}) FROM {staged.table}").fetchall()
    return total


def _note(con: duckdb.DuckDBPyConnection, identity: str, source: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        con.execute(
            "INSERT INTO lake.charge_finding VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, now())", [identity, source, *finding]
        )


def _record(
    con: duckdb.DuckDBPyConnection,
    staged: Staged,
    kind: str,
    identity: str,
    options: Mapping[str, str],
    delivery: Delivery | None,
    status: str,
    control_sum: object,
) -> None:
    values = {
        "kind": kind,
        "source": staged.file,
        "snapshot_id": identity,
        "file_sha256": staged.file_sha256,
        "options": json.dumps(dict(options), sort_keys=True),
        "row_count": staged.row_count,
        "control_sum": control_sum,
        "rounded_row_count": staged.rounded_row_count,
        "status": status,
        **(asdict(delivery) if delivery else {}),
    }
    named = ", ".join(f"${name} AS {name}" for name in values)
    con.execute(
        # Later than every load before it, even when the clock was set back since.
        f"INSERT INTO lake.snapshot BY NAME SELECT {named}, greatest(now(), "
        "(SELECT max(loaded_at) + INTERVAL 1 MICROSECOND FROM lake.snapshot)) AS loaded_at",
        values,
    )


def is_current(con: duckdb.DuckDBPyConnection, staged: Staged, kind: str, options: Mapping[str, str]) -> bool:
    """Whether this very content counts already, under whatever name."""
    identity = [kind, snapshot_id(kind, staged.file_sha256, options)]
    query = f"SELECT 1 FROM ({CURRENT}) WHERE kind = ? AND snapshot_id = ?"
    return con.execute(query, identity).fetchone() is not None


def current_rows(
    con: duckdb.DuckDBPyConnection, table: str, source: str, fields: Sequence[str]
) -> list[dict[str, Any]]:
    """The rows, by these fields, of what a source says now; none where it has never been loaded."""
    found = con.execute(
        f"SELECT {', '.join(map(identifier, fields))} FROM lake.{table} WHERE snapshot_id = "
        f"(SELECT snapshot_id FROM ({NEWEST}) WHERE kind = ? AND source = ?) ORDER BY source_row",
        [KIND_OF[table], source],
    )
    return [dict(zip(fields, row, strict=True)) for row in found.fetchall()]


def show_current(con: duckdb.DuckDBPyConnection, *, copied: Collection[str] = ()) -> None:
    """Show the current snapshots of each input table under its name (`node`, `charge`, ...), as temporary views.

    Those in `copied` are read once into memory and shown from there: worth it for small ones that many steps read.
    Which snapshots are current is then read once too, and holds until the next call.
    """
    loaded = set(KIND_OF.values())
    snapshots = CURRENT
    if copied:  # many reads are to come, and each would look for the current ones again
        con.execute(f"CREATE OR REPLACE TEMP TABLE copied_snapshot AS {CURRENT}")
        loaded = {kind for (kind,) in con.execute("SELECT DISTINCT kind FROM copied_snapshot").fetchall()}
        snapshots = "FROM copied_snapshot"
    con.execute(f"CREATE OR REPLACE TEMP VIEW current_snapshot AS {snapshots}")
    for table, kind in KIND_OF.items():
        rows = (
            f"SELECT t.*, s.source AS source_file FROM lake.{table} AS t "
            f"JOIN current_snapshot AS s USING (snapshot_id) WHERE s.kind = '{kind}'"
        )
        if kind not in loaded:  # then the lake need not be asked
            rows = f"SELECT t.*, CAST(NULL AS VARCHAR) AS source_file FROM lake.{table} AS t WHERE false"
        if table in copied:
            con.execute(f"CREATE OR REPLACE TEMP TABLE copied_{table} AS {rows}")
            rows = f"FROM copied_{table}"
        con.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS {rows}")
