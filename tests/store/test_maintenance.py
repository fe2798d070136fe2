"""Maintenance makes the lake smaller and changes nothing that anybody may still ask for."""

from __future__ import annotations

import datetime
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import store.maintenance
from fleet.errors import LakeError
from store.maintenance import (
    BATCH_NAME_DAYS,
    Maintained,
    compact_names,
    delete_old_rows,
    expire_snapshots,
    maintain,
    merge_files,
    remove_files,
    remove_orphans,
)
from store.telemetry import append
from store.telemetry_views import stored_counts
from tests.store.telemetry_rows import NOW, batch, engine_histogram, engine_window, holding, window
from tests.store.worker import open_lake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.lake import Lake

DAY = 86_400
TODAY = NOW // DAY
ALL = "SELECT * EXCLUDE (received_at) FROM (FROM lake.{}) ORDER BY ALL"
LATER = 1e10


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with open_lake(tmp_path) as opened:
        yield opened


def ask(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    return lake.connection.execute(query).fetchall()


def fill(lake: Lake, commits: int, *, first: int = 0, second: int = NOW) -> None:
    for number in range(first, first + commits):
        rows = {"device_window": [window(f"GPU-{n}", second, busy_ms=number) for n in (3, 1, 2)]}
        append(lake, [batch("n", number, rows | {"held_window": [holding("GPU-1", second, second + 60)]})])


def files(lake: Lake, table: str) -> list[str]:
    return [str(path) for (path, *_) in ask(lake, f"FROM ducklake_list_files('lake', '{table}')")]


def contents(lake: Lake) -> list[Any]:
    return [ask(lake, f"FROM lake.{table} ORDER BY ALL") for table in ("device_window", "held_window", "device_number")]


def pin(lake: Lake, period: str, snapshot: int) -> None:
    """Publish a build, as far as maintenance can tell."""
    lake.write(
        lambda con: con.execute(
            "INSERT INTO lake.build (period, input_lake_snapshot) VALUES (?, ?)", [period, snapshot]
        )
    )


def test_merging_keeps_every_row_and_sorts_them(lake: Lake) -> None:
    fill(lake, 8)
    before = contents(lake)
    assert len(files(lake, "device_window")) == 8
    assert merge_files(lake, "device_window") == 8
    (merged,) = files(lake, "device_window")
    assert contents(lake) == before
    found = ask(lake, f"SELECT dh, second FROM read_parquet('{merged}')")
    assert found == sorted(found)
    assert merge_files(lake, "device_window") == 0, "nothing to merge"


def test_merged_files_are_synced_before_the_commit(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lake, 3)
    synced: list[int] = []
    really = os.fsync

    def fsync(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        really(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    merge_files(lake, "device_window")
    (merged,) = files(lake, "device_window")
    assert Path(merged).stat().st_ino in synced


def test_a_pinned_snapshot_stays_readable_and_others_go(lake: Lake) -> None:
    fill(lake, 3)
    pinned = lake.snapshot()
    seen = ask(lake, "FROM lake.device_window ORDER BY ALL")
    pin(lake, "2026-05", pinned)
    fill(lake, 5, first=3)
    before = contents(lake)
    done = maintain(lake, retention_days=1, snapshot_hours=0, file_seconds=0, now_second=time.time() + 60)
    assert done.expired_snapshots > 5
    assert done.removed_files == 0, "readers have a while"
    done = maintain(lake, retention_days=1, snapshot_hours=0, file_seconds=0, now_second=time.time() + 60)
    assert done.removed_files > 5
    assert contents(lake) == before
    assert ask(lake, f"FROM lake.device_window AT (VERSION => {pinned}) ORDER BY ALL") == seen
    left = [snapshot for (snapshot,) in ask(lake, "SELECT snapshot_id FROM lake.snapshots()")]
    assert pinned in left
    with pytest.raises(Exception, match="No snapshot found"):
        ask(lake, f"FROM lake.device_window AT (VERSION => {pinned + 2})")


def test_young_snapshots_stay(lake: Lake) -> None:
    fill(lake, 3)
    assert expire_snapshots(lake, before_second=time.time() - 3600) == 0


def test_the_newest_snapshot_stays_whatever_its_age(lake: Lake) -> None:
    fill(lake, 2)
    newest = lake.snapshot()
    expire_snapshots(lake, before_second=LATER)
    assert lake.snapshot() >= newest
    assert len(ask(lake, "FROM lake.device_window")) == 6


def test_many_snapshots_are_expired_in_parts(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.maintenance, "EXPIRED_AT_ONCE", 3)
    fill(lake, 8)
    assert expire_snapshots(lake, before_second=LATER) >= 8
    assert expire_snapshots(lake, before_second=LATER) <= 4, "only those that expiring itself made"


def test_old_windows_go_and_those_of_a_published_month_stay(lake: Lake) -> None:
    def second(text: str) -> int:
        return int(datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp())

    times = ["2025-02-28T23:59", "2025-03-01T00:00", "2025-03-31T23:59", "2025-04-01T00:00", "2026-05-28T00:00"]
    for number, text in enumerate(times):
        fill(lake, 1, first=number, second=second(text))
    pin(lake, "2025-03", lake.snapshot())
    # Three windows and one holding for each of the two times that are older and of other months.
    assert delete_old_rows(lake, today=TODAY, retention_days=400) == 8
    assert delete_old_rows(lake, today=TODAY, retention_days=400) == 0
    for table in ("device_window", "held_window"):
        found = ask(lake, f"SELECT DISTINCT day * 86400::BIGINT + second FROM lake.{table} ORDER BY 1")
        assert found == [(second(text),) for text in (times[1], times[2], times[4])], table


def test_retention_counts_whole_days(lake: Lake) -> None:
    fill(lake, 1, first=0, second=(TODAY - 400) * DAY)
    fill(lake, 1, first=1, second=(TODAY - 401) * DAY)
    delete_old_rows(lake, today=TODAY, retention_days=400)
    assert ask(lake, "SELECT DISTINCT day FROM lake.device_window") == [(TODAY - 400,)]


def test_names_of_batches_outlive_every_batch_that_could_come_again(lake: Lake) -> None:
    fill(lake, 1, second=(TODAY - BATCH_NAME_DAYS - 1) * DAY)
    delete_old_rows(lake, today=TODAY, retention_days=10_000)
    assert len(ask(lake, "FROM lake.ingest_batch")) == 1, "it arrived today, and may be sent again"
    delete_old_rows(lake, today=TODAY + BATCH_NAME_DAYS + 2, retention_days=10_000)
    assert ask(lake, "FROM lake.ingest_batch") == []


@settings(max_examples=8)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 15), min_size=1, max_size=6)), max_size=5))
def test_compacted_names_are_the_same_names(tmp_path_factory: pytest.TempPathFactory, groups: list[Any]) -> None:
    with open_lake(tmp_path_factory.mktemp("names")) as lake:
        stored: set[tuple[str, int]] = set()
        for node, numbers in groups:
            append(lake, [batch(node, n, {"device_window": [window("GPU")]}) for n in numbers])
            stored |= {(node, n) for n in numbers}
        compact_names(lake)
        ranges = ask(lake, "SELECT node, first_sequence, last_sequence FROM lake.ingest_batch ORDER BY ALL")
        named = [(node, n) for node, first, last in ranges for n in range(first, last + 1)]
        assert sorted(named) == sorted(stored)
        assert not {(node, last + 1) for node, _, last in ranges} & {(node, first) for node, first, _ in ranges}
        assert compact_names(lake) == 0
        everything = [batch(node, n, {"device_window": [window("GPU")]}) for node, n in sorted(stored)]
        assert not everything or append(lake, everything).known == set(range(len(everything)))


def test_files_that_nothing_needs_are_kept_for_a_while(lake: Lake, tmp_path: Path) -> None:
    fill(lake, 4)
    merge_files(lake, "device_window")
    expire_snapshots(lake, before_second=LATER)
    assert remove_files(lake, before_second=time.time() - 3600) == 0, "ducklake itself would delete them all"
    assert remove_files(lake, before_second=time.time() + 60) >= 4
    assert len(list((tmp_path / "data/main/device_window").rglob("*.parquet"))) == 1


def test_orphans_go_and_live_files_stay(lake: Lake, tmp_path: Path) -> None:
    fill(lake, 3)
    before = contents(lake)
    orphan = tmp_path / f"data/main/device_window/day={TODAY}/ducklake-00000000-0000-7000-8000-000000000000.parquet"
    orphan.write_bytes(b"left by a process that was killed")
    assert remove_orphans(lake, before_second=time.time() - 3600) == 0, "it may belong to a transaction under way"
    assert orphan.exists()
    assert remove_orphans(lake, before_second=time.time() + 60) == 1
    assert not orphan.exists()
    assert contents(lake) == before


def test_a_live_file_that_is_listed_as_orphaned_stops_the_clean_up(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As DuckLake once did where the data path had a doubled slash: nothing may be deleted then."""
    fill(lake, 3)
    (alive, *_) = files(lake, "device_window")
    catalog = lake.connection
    catalog.execute("BEGIN")
    catalog.execute("COMMIT")
    moved = tmp_path / "data/main/device_window/elsewhere.parquet"
    moved.write_bytes(b"x")
    monkeypatch.setattr(store.maintenance, "_known_files", lambda con: {"elsewhere.parquet", alive.rpartition("/")[2]})
    with pytest.raises(LakeError, match=r"1 live files were listed as orphaned, elsewhere\.parquet among them"):
        remove_orphans(lake, before_second=time.time() + 60)
    assert moved.exists()


def test_known_files_are_those_of_every_snapshot_and_those_that_wait_to_be_deleted(lake: Lake, tmp_path: Path) -> None:
    fill(lake, 3)
    merge_files(lake, "device_window")
    on_disk = {path.name for path in (tmp_path / "data").rglob("*.parquet")}
    assert on_disk <= store.maintenance._known_files(lake.connection)


def test_a_second_round_has_nothing_to_do(lake: Lake) -> None:
    fill(lake, 4)
    counts = stored_counts(lake.connection, TODAY - 1, TODAY + 1)
    assert counts == [("device_window", TODAY, 12), ("held_window", TODAY, 4)]
    later = time.time() + 60
    first = maintain(lake, retention_days=400, snapshot_hours=0, file_seconds=0, now_second=later)
    assert "merged files" in str(first)
    maintain(lake, retention_days=400, snapshot_hours=0, file_seconds=0, now_second=later)
    # What is left are the snapshots that rounds make themselves.
    third = maintain(lake, retention_days=400, snapshot_hours=0, file_seconds=0, now_second=later)
    assert stored_counts(lake.connection, TODAY - 1, TODAY + 1) == counts
    assert third == Maintained(0, 0, 0, third.expired_snapshots, 0, 0)
    assert str(Maintained(0, 0, 0, 0, 0, 0)) == "nothing to do"


def test_rounds_beside_a_writer_lose_nothing(lake: Lake, tmp_path: Path) -> None:
    """Another connection of the same kind as another process's: it takes the same lock."""
    failed: list[BaseException] = []

    def keep_maintaining() -> None:
        try:
            with open_lake(tmp_path) as other:
                while not done.is_set():
                    maintain(other, retention_days=10_000, snapshot_hours=0, file_seconds=0)
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failed.append(error)

    done = threading.Event()
    thread = threading.Thread(target=keep_maintaining)
    thread.start()
    try:
        fill(lake, 25)
    finally:
        done.set()
        thread.join()
    assert failed == []
    found = ask(lake, "SELECT busy_ms, count(*) FROM lake.device_window GROUP BY 1 ORDER BY 1")
    assert found == [(number, 3) for number in range(25)]


def test_windows_of_model_servers_are_merged_and_deleted_as_those_of_devices(lake: Lake) -> None:
    for number in range(3):
        old, new = NOW - 30 * DAY, NOW + 60 * number
        tables = {
            "engine_window": [engine_window("a", old), engine_window("a", new)],
            "engine_histogram": [engine_histogram("a", old), engine_histogram("a", new)],
        }
        append(lake, [batch("n", number, tables)])
    assert delete_old_rows(lake, today=TODAY, retention_days=20) == 6
    for table in ("engine_window", "engine_histogram"):
        assert ask(lake, f"SELECT count(*) FROM lake.{table}") == [(3,)]
        assert merge_files(lake, table) >= 3
        assert len(files(lake, table)) == 1
