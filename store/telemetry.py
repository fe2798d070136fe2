"""Append batches of telemetry to the lake: each one once, all of a group in one commit.

A batch is named by (cluster, node, boot id, spool id, sequence). Its name is committed together with its rows, so a
batch that comes again, because its answer was lost, is found and left alone. Device numbers are given under the lake's
write lock, so each device of a node has one.

Names and numbers are looked up in temporary tables beside the lake, as a lake that takes a commit every 200 ms has many
small files. They change in the same transaction, so what is rolled back in the lake is rolled back in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from fleet.errors import LakeError
from store.sqltext import identifier
from store.telemetry_layout import Layout, layouts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from store.lake import Lake
    from store.telemetry_arrow import Table

BatchName: TypeAlias = tuple[str, str, str, str, int]
BATCH_SCHEMA: Final = (
    ("batch_no", pa.int32()), ("day", pa.int32()), ("cluster", pa.string()), ("node", pa.string()),
    ("boot_id", pa.string()), ("spool_id", pa.string()), ("sequence", pa.int64()),
    ("received_at", pa.timestamp("us", "UTC")),
)  # fmt: skip
MIRRORS = """
    CREATE OR REPLACE TEMP TABLE known_batch AS FROM lake.ingest_batch LIMIT 0;
    CREATE OR REPLACE TEMP TABLE known_device AS FROM lake.device_number LIMIT 0;
"""
KNOWN = """
    SELECT DISTINCT i.batch_no FROM incoming_batch AS i JOIN known_batch AS s
    ON s.day = i.day AND s.cluster = i.cluster AND s.node = i.node AND s.boot_id = i.boot_id
    AND s.spool_id = i.spool_id AND i.sequence BETWEEN s.first_sequence AND s.last_sequence
"""
RECORD = """
    INSERT INTO {table}
    SELECT day, cluster, node, boot_id, spool_id, min(sequence), max(sequence), max(received_at) FROM (
        SELECT *, sequence - row_number() OVER (
            PARTITION BY day, cluster, node, boot_id, spool_id ORDER BY sequence
        ) AS island FROM incoming_batch
    ) GROUP BY day, cluster, node, boot_id, spool_id, island ORDER BY day, cluster, node, min(sequence)
"""
"""Neighbouring sequences are one row."""
NEW_DEVICES = """
    SELECT DISTINCT b.cluster, b.node, r.device FROM ({rows}) AS r
    JOIN incoming_batch AS b USING (batch_no)
    ANTI JOIN known_device AS n ON n.cluster = b.cluster AND n.node = b.node AND n.device = r.device
"""
CATCH_UP = """
    INSERT INTO known_device
    FROM lake.device_number WHERE device_no > (SELECT coalesce(max(device_no), 0) FROM known_device)
"""
NUMBER_DEVICES = """
    INSERT INTO lake.device_number
    SELECT ((SELECT coalesce(max(device_no), 0) FROM known_device)
        + row_number() OVER (ORDER BY cluster, node, device))::INTEGER, cluster, node, device FROM ({new_devices})
"""
FRESH_EVENTS = """
    ANTI JOIN lake.device_event AS e ON e.day = (r.event_microsecond // 86400000000)::INTEGER
    AND e.cluster = b.cluster AND e.node = b.node AND e.event_id = r.event_id
    QUALIFY row_number() OVER (PARTITION BY b.cluster, b.node, r.event_id ORDER BY b.batch_no) = 1
"""
"""A kernel's log is read again after a restart: an event that is stored is not stored again."""


class RowsRefusedError(LakeError):
    """The lake cannot hold these very rows: trying again will not help, other rows may pass."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """One batch whose tables were decoded and checked."""

    cluster: str
    node: str
    boot_id: str
    spool_id: str
    sequence: int
    received_at: datetime
    tables: Mapping[str, Table]

    @property
    def name(self) -> BatchName:
        """What makes it the same batch when it comes again."""
        return (self.cluster, self.node, self.boot_id, self.spool_id, self.sequence)

    @property
    def newest_window_second(self) -> int | None:
        """Start of the newest device window; None without any."""
        windows = self.tables.get("device_window")
        return pc.max(windows.column("window_start_second")).as_py() if windows is not None else None


@dataclass(frozen=True, slots=True)
class Appended:
    """What one commit did. `known` are the places, in the given order, of batches that had been stored before."""

    known: frozenset[int]
    row_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Mirror:
    """What the temporary table of names holds: those of `days`, as the lake had them at `snapshot`."""

    snapshot: int
    days: frozenset[int]


NO_MIRROR: Final = Mirror(-1, frozenset())


class Appender:
    """Stores batches in one lake; keep it for as long as the lake is open, and use it from one thread."""

    def __init__(self, lake: Lake) -> None:
        """Nothing is mirrored yet. LakeError when the lake cannot be read."""
        self._lake = lake
        self._mirror = NO_MIRROR
        lake.write(lambda con: con.execute(MIRRORS))

    def append(self, batches: Sequence[StoredBatch]) -> Appended:
        """Store batches in one transaction, each once, whatever was stored before and however often it is tried.

        Raises RowsRefusedError when the rows themselves are at fault, LakeError or OSError when the lake is: then
        nothing of the group is stored.
        """
        incoming = _incoming(batches)
        try:
            done, self._mirror = self._lake.write(lambda con: _append(con, batches, incoming, self._mirror))
        except LakeError as error:
            if isinstance(error.__cause__, duckdb.DataError | duckdb.ConstraintException):
                raise RowsRefusedError(str(error)) from error
            raise
        return done


def append(lake: Lake, batches: Sequence[StoredBatch]) -> Appended:
    """Store batches once, as `Appender.append`, which is faster for many groups."""
    return Appender(lake).append(batches)


def _append(
    con: duckdb.DuckDBPyConnection, batches: Sequence[StoredBatch], incoming: Table, mirror: Mirror
) -> tuple[Appended, Mirror]:
    """Store what is new; return what was done, and the mirror as it is once this is committed."""
    mirror = _mirror_names(con, set(incoming.column("day").to_pylist()), mirror)
    known = _known(con, batches, incoming)
    fresh = [number for number in range(len(batches)) if number not in known]
    if not fresh:
        return Appended(frozenset(known), {}), mirror
    rows = {
        name: joined for name in layouts() if (joined := _joined(name, batches, fresh)) is not None and joined.num_rows
    }
    try:
        con.register("incoming_batch", incoming.take(fresh))
        for name, table in rows.items():
            con.register(f"incoming_{name}", table)
        _number_devices(con, rows)
        counts = {name: _insert(con, layouts()[name]) for name in rows}
        for table in ("lake.ingest_batch", "known_batch"):
            con.execute(RECORD.format(table=table))
    finally:
        for name in ("batch", *rows):
            con.unregister(f"incoming_{name}")
    return Appended(frozenset(known), counts), Mirror(mirror.snapshot + 1, mirror.days)


def _mirror_names(con: duckdb.DuckDBPyConnection, days: set[int], mirror: Mirror) -> Mirror:
    """Copy the names of these days from the lake, unless they are here and nobody else has written since."""
    ((current,),) = con.execute("FROM ducklake_current_snapshot('lake')").fetchall()
    if current != mirror.snapshot:
        con.execute("DELETE FROM known_batch")
        mirror = Mirror(int(current), frozenset())
    for day in days - mirror.days:
        con.execute("INSERT INTO known_batch FROM lake.ingest_batch WHERE day = ?", [day])
    return Mirror(mirror.snapshot, mirror.days | days)


def _incoming(batches: Sequence[StoredBatch]) -> Table:
    rows = [
        {"batch_no": number, "day": _first_day(batch), "cluster": batch.cluster, "node": batch.node,
         "boot_id": batch.boot_id, "spool_id": batch.spool_id, "sequence": batch.sequence,
         "received_at": batch.received_at}
        for number, batch in enumerate(batches)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema(BATCH_SCHEMA))


def _first_day(batch: StoredBatch) -> int:
    """Day of the earliest row, in days since 1970: the same bytes come to the same day, whenever they arrive."""
    days = [
        pc.min(table.column(column)).as_py() // units_per_day
        for name, table in batch.tables.items()
        if table.num_rows
        for column, units_per_day in layouts()[name].time_columns.items()
    ]
    return min(days, default=int(batch.received_at.timestamp()) // 86_400)


def _known(con: duckdb.DuckDBPyConnection, batches: Sequence[StoredBatch], incoming: Table) -> set[int]:
    """Places of the batches that are in the lake, or stand twice in this group."""
    try:
        con.register("incoming_batch", incoming)
        known = {int(number) for (number,) in con.execute(KNOWN).fetchall()}
    finally:
        con.unregister("incoming_batch")
    seen: set[BatchName] = set()
    for number, batch in enumerate(batches):
        if batch.name in seen:
            known.add(number)
        seen.add(batch.name)
    return known


def _joined(name: str, batches: Sequence[StoredBatch], fresh: Iterable[int]) -> Table | None:
    """One table's rows of all fresh batches, each with the number of its batch."""
    parts = [
        table.append_column("batch_no", pa.array([number] * table.num_rows, pa.int32()))
        for number in fresh
        if (table := batches[number].tables.get(name)) is not None and table.num_rows
    ]
    return pa.concat_tables(parts) if parts else None


def _number_devices(con: duckdb.DuckDBPyConnection, rows: Mapping[str, Any]) -> None:
    numbered = [name for name in rows if layouts()[name].is_numbered]
    if not numbered:
        return
    union = " UNION ".join(f"SELECT batch_no, device FROM {identifier(f'incoming_{name}')}" for name in numbered)
    new_devices = NEW_DEVICES.format(rows=union)
    if con.execute(f"{new_devices} LIMIT 1").fetchone() is None:
        return
    con.execute(CATCH_UP)
    if con.execute(f"{new_devices} LIMIT 1").fetchone() is not None:
        con.execute(NUMBER_DEVICES.format(new_devices=new_devices))
        con.execute(CATCH_UP)


def _insert(con: duckdb.DuckDBPyConnection, layout: Layout) -> int:
    """Insert one table's rows; return how many. They are sorted by the table's own order."""
    values = ", ".join(f"{column.value} AS {identifier(column.name)}" for column in layout.columns)
    source = (
        f"SELECT {values} FROM {identifier(f'incoming_{layout.table}')} AS r JOIN incoming_batch AS b USING (batch_no)"
    )
    if layout.is_numbered:
        source += " JOIN known_device AS n ON n.cluster = b.cluster AND n.node = b.node AND n.device = r.device"
    if layout.table == "device_event":
        source += FRESH_EVENTS
    row = con.execute(f"INSERT INTO lake.{identifier(layout.table)} {source}").fetchone()
    return int(row[0]) if row else 0
