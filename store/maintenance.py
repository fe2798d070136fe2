"""Keep the lake small and fast: merge small files, forget old history, delete old windows, clean up what is left over.

Every step is one transaction under the lake's write lock and may be repeated, so maintenance runs safely beside a hub.
What a published build was computed from, its snapshot and the windows of its month, is never touched.

`cleanup_all` is never used: it would also delete files of transactions that are still under way. Orphaned files are
listed first and compared with the catalog: a data path with a doubled slash once made DuckLake list live files.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Final

from fleet.errors import LakeError
from fleet.period import month
from store.sqltext import identifier

if TYPE_CHECKING:
    import duckdb

    from store.lake import Lake

SECONDS_PER_DAY: Final = 86_400
RETAINED_TABLES: Final = ("device_window", "held_window", "engine_window", "engine_histogram")
MERGED_TABLES: Final = (*RETAINED_TABLES, "device_event", "seen_device", "device_number", "ingest_batch")
BATCH_NAME_DAYS: Final = 50
"""Names of batches are kept for longer than a hub takes windows of (45 days): no batch can come again after that."""
EXPIRED_AT_ONCE: Final = 5000
CROWDED_DAYS = """
    SELECT day FROM lake.ingest_batch GROUP BY day HAVING count(*) > count(DISTINCT (cluster, node, boot_id, spool_id))
"""
COMPACT_NAMES = """
    CREATE OR REPLACE TEMP TABLE compacted AS
    WITH ordered AS (
        SELECT *, max(last_sequence) OVER (
            PARTITION BY day, cluster, node, boot_id, spool_id ORDER BY first_sequence
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached FROM lake.ingest_batch WHERE day = $day
    ), numbered AS (
        SELECT *, sum((reached IS NULL OR first_sequence > reached + 1)::INTEGER) OVER (
            PARTITION BY day, cluster, node, boot_id, spool_id ORDER BY first_sequence
        ) AS island FROM ordered
    )
    SELECT day, cluster, node, boot_id, spool_id, min(first_sequence) AS first_sequence,
        max(last_sequence) AS last_sequence, max(received_at) AS received_at
    FROM numbered GROUP BY day, cluster, node, boot_id, spool_id, island
"""
LAST_OLD_DAY = """
    WITH file AS (
        SELECT schedule_start::TIMESTAMPTZ AS left_at
        FROM __ducklake_metadata_lake.ducklake_files_scheduled_for_deletion
    )
    SELECT max(date_trunc('day', left_at)) + INTERVAL 12 HOUR FROM file
    WHERE date_trunc('day', left_at) < coalesce(
        (SELECT date_trunc('day', min(left_at)) FROM file WHERE left_at >= to_timestamp($before)), 'infinity'
    )
"""
PINNED: Final = "SELECT DISTINCT period, input_lake_snapshot FROM lake.build"
SNAPSHOTS = """
    SELECT snapshot_id FROM lake.snapshots()
    WHERE snapshot_time < to_timestamp($before) AND snapshot_id < (SELECT max(snapshot_id) FROM lake.snapshots())
    ORDER BY snapshot_id
"""


@dataclass(frozen=True, slots=True)
class Maintained:
    """What one round did."""

    merged_files: int
    compacted_names: int
    deleted_rows: int
    expired_snapshots: int
    removed_files: int
    orphaned_files: int

    def __str__(self) -> str:
        """One line, without what did not happen."""
        parts = [f"{getattr(self, f.name)} {f.name.replace('_', ' ')}" for f in fields(self) if getattr(self, f.name)]
        return ", ".join(parts) or "nothing to do"


def maintain(
    lake: Lake, *, retention_days: int, snapshot_hours: float, file_seconds: float, now_second: float | None = None
) -> Maintained:
    """Run every step once.

    `file_seconds` is how long a file that nothing needs is left for readers that began before; choose it shorter than
    the pause between rounds, as files are removed first and only when all of a day have lain so long. Raises LakeError
    when DuckLake names a live file as orphaned: then none was deleted.
    """
    now = time.time() if now_second is None else now_second
    today = int(now) // SECONDS_PER_DAY
    removed = remove_files(lake, before_second=now - file_seconds)
    deleted = delete_old_rows(lake, today=today, retention_days=retention_days)
    compacted = compact_names(lake)
    merged = sum(merge_files(lake, table) for table in MERGED_TABLES)
    expired = expire_snapshots(lake, before_second=now - snapshot_hours * 3600)
    # A day: files of transactions under way are in no catalog yet.
    orphaned = remove_orphans(lake, before_second=now - SECONDS_PER_DAY)
    return Maintained(merged, compacted, deleted, expired, removed, orphaned)


def merge_files(lake: Lake, table: str) -> int:
    """Merge a table's small files, sorted, within each day; return how many were merged."""

    def merge(con: duckdb.DuckDBPyConnection) -> int:
        rows = con.execute("CALL ducklake_merge_adjacent_files('lake', ?)", [table]).fetchall()
        return sum(int(row[2]) for row in rows)

    return lake.write(merge)


def delete_old_rows(lake: Lake, *, today: int, retention_days: int) -> int:
    """Delete windows and holdings older than the retention, except of months that were published, and old batch names.

    A month is pinned by any build of it: `gputally verify` computes it again from these rows.
    """

    def delete(con: duckdb.DuckDBPyConnection) -> int:
        kept = " AND ".join(f"day NOT BETWEEN {first} AND {last}" for first, last in _pinned_days(con)) or "true"
        conditions = dict.fromkeys(RETAINED_TABLES, f"day < {today - retention_days} AND {kept}")
        oldest = today - BATCH_NAME_DAYS
        conditions["ingest_batch"] = f"day < {oldest} AND received_at < to_timestamp({oldest * SECONDS_PER_DAY})"
        count = 0
        for table, condition in conditions.items():
            row = con.execute(f"DELETE FROM lake.{identifier(table)} WHERE {condition}").fetchone()
            count += int(row[0]) if row else 0
        return count

    return lake.write(delete)


def _pinned_days(con: duckdb.DuckDBPyConnection) -> list[tuple[int, int]]:
    spans = [month(period) for period, _ in con.execute(PINNED).fetchall()]
    days = {
        (int(span.start.timestamp()) // SECONDS_PER_DAY, int(span.end.timestamp() - 1) // SECONDS_PER_DAY)
        for span in spans
    }
    return sorted(days)


def compact_names(lake: Lake) -> int:
    """Join neighbouring ranges of batch names, day by day; return how many rows fewer there are."""
    days = lake.connection.execute(CROWDED_DAYS).fetchall()
    return sum(lake.write(partial(_compact_day, day=int(day))) for (day,) in days)


def _compact_day(con: duckdb.DuckDBPyConnection, day: int) -> int:
    before = _count(con, "SELECT count(*) FROM lake.ingest_batch WHERE day = ?", day)
    con.execute(COMPACT_NAMES, {"day": day})
    after = _count(con, "SELECT count(*) FROM compacted")
    if after < before:
        con.execute("DELETE FROM lake.ingest_batch WHERE day = ?", [day])
        con.execute("INSERT INTO lake.ingest_batch FROM compacted ORDER BY cluster, node, boot_id, first_sequence")
    con.execute("DROP TABLE compacted")
    return before - after


def expire_snapshots(lake: Lake, *, before_second: float) -> int:
    """Forget snapshots older than that, except the newest and those that published builds pin; return how many."""

    def expire(con: duckdb.DuckDBPyConnection) -> int:
        pinned = {int(snapshot) for _, snapshot in con.execute(PINNED).fetchall() if snapshot is not None}
        found = [int(row[0]) for row in con.execute(SNAPSHOTS, {"before": before_second}).fetchall()]
        chosen = [snapshot for snapshot in found if snapshot not in pinned][:EXPIRED_AT_ONCE]
        if chosen:
            con.execute(f"CALL ducklake_expire_snapshots('lake', versions => {chosen})")
        return len(chosen)

    total = 0
    while count := lake.write(expire):
        total += count
    return total


def remove_files(lake: Lake, *, before_second: float) -> int:
    """Delete files that no snapshot needs and that were given up before that time; return how many.

    On a SQLite catalog DuckLake compares these times as texts of two forms, which agree on the date only (in 1.5.5 an
    `older_than` of an hour ago deletes files given up a minute ago). So the call is made for whole days of which every
    file is old enough.
    """

    def remove(con: duckdb.DuckDBPyConnection) -> int:
        (noon,) = con.execute(LAST_OLD_DAY, {"before": before_second}).fetchall()[0]
        if noon is None:
            return 0
        return len(con.execute("CALL ducklake_cleanup_old_files('lake', older_than => ?)", [noon]).fetchall())

    return lake.write(remove)


def remove_orphans(lake: Lake, *, before_second: float) -> int:
    """Delete files that the catalog does not know, left by a process that was killed; return how many.

    Raises LakeError, deleting nothing, when the list holds a file that the catalog does know.
    """

    def remove(con: duckdb.DuckDBPyConnection) -> int:
        call = "CALL ducklake_delete_orphaned_files('lake', dry_run => {}, older_than => to_timestamp(?))"
        listed = {_file_name(row[0]) for row in con.execute(call.format("true"), [before_second]).fetchall()}
        if not listed:
            return 0
        if live := listed & _known_files(con):
            raise LakeError(
                f"{len(live)} live files were listed as orphaned, {min(live)} among them: nothing was deleted"
            )
        return len(con.execute(call.format("false"), [before_second]).fetchall())

    return lake.write(remove)


def _known_files(con: duckdb.DuckDBPyConnection) -> set[str]:
    """Names of all files in the catalog, of any snapshot; a name is unique, so its folder need not be compared."""
    found = con.execute(
        "SELECT path FROM __ducklake_metadata_lake.ducklake_data_file "
        "UNION ALL SELECT path FROM __ducklake_metadata_lake.ducklake_delete_file "
        "UNION ALL SELECT path FROM __ducklake_metadata_lake.ducklake_files_scheduled_for_deletion"
    ).fetchall()
    return {_file_name(path) for (path,) in found}


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _count(con: duckdb.DuckDBPyConnection, query: str, *values: int) -> int:
    row = con.execute(query, list(values)).fetchone()
    return int(row[0]) if row else 0
