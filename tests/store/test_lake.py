"""The lake's promises to one process: whole transactions, synced before they are acknowledged, clear refusals."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from filelock import FileLock

import store.lake
from fleet.errors import LakeBusyError, LakeError, NotBuiltError
from store.lake import memory
from tests.store.worker import ROWS_PER_BATCH, insert, make_table, open_lake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from store.lake import Lake

ROOT = Path(__file__).parents[2]
HOLD = """
import sqlite3, sys
catalog = sqlite3.connect(sys.argv[1], isolation_level=None)
catalog.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
catalog.execute("ROLLBACK")
"""


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with open_lake(tmp_path) as opened:
        opened.write(make_table)
        yield opened


def count(lake: Lake) -> int:
    ((rows,),) = lake.connection.execute("SELECT count(*) FROM lake.batch").fetchall()
    return int(rows)


def parquet_files(folder: Path) -> set[Path]:
    return set(folder.rglob("*.parquet"))


@contextmanager
def catalog_held(folder: Path) -> Iterator[Callable[[], None]]:
    """Another process holds the catalog's write lock, until it is let go. (POSIX locks do not part two libraries of
    one process.)
    """
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder / "catalog.sqlite")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"

    def let_go() -> None:
        holder.communicate("go\n", timeout=30)

    try:
        yield let_go
    finally:
        if holder.poll() is None:
            let_go()


def test_a_write_returns_what_its_change_returns_and_is_one_snapshot(lake: Lake) -> None:
    before = lake.snapshot()

    def change(con: duckdb.DuckDBPyConnection) -> str:
        insert(con, "a")
        insert(con, "b")
        return "done"

    assert lake.write(change) == "done"
    assert (count(lake), lake.snapshot()) == (2 * ROWS_PER_BATCH, before + 1)


def test_a_change_that_raises_leaves_nothing_behind_and_the_lake_usable(lake: Lake, tmp_path: Path) -> None:
    lake.write(lambda con: insert(con, "kept"))
    before, files = lake.snapshot(), parquet_files(tmp_path)

    def change(con: duckdb.DuckDBPyConnection) -> None:
        insert(con, "lost")
        raise KeyError("in the middle")

    with pytest.raises(KeyError):
        lake.write(change)
    assert (count(lake), lake.snapshot(), parquet_files(tmp_path)) == (ROWS_PER_BATCH, before, files)
    lake.write(lambda con: insert(con, "later"))
    assert count(lake) == 2 * ROWS_PER_BATCH


def test_a_bad_statement_is_a_lake_error_of_one_line(lake: Lake) -> None:
    with pytest.raises(LakeError, match="nowhere") as caught:
        lake.write(lambda con: con.execute("SELECT * FROM nowhere"))
    assert not isinstance(caught.value, LakeBusyError)
    assert "\n" not in str(caught.value)


def test_a_write_starts_again_when_the_catalog_is_busy(lake: Lake, tmp_path: Path) -> None:
    """Another program holds SQLite's write lock until the change has begun a second time."""
    calls = 0
    with catalog_held(tmp_path) as let_go:

        def change(con: duckdb.DuckDBPyConnection) -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                let_go()
            insert(con, "a")

        lake.write(change)
    assert calls == 2
    assert count(lake) == ROWS_PER_BATCH


def test_a_write_gives_up_when_the_catalog_stays_busy(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.lake, "MAX_ATTEMPTS", 1)
    with catalog_held(tmp_path), pytest.raises(LakeBusyError, match="stayed busy"):
        lake.write(lambda con: insert(con, "a"))
    assert count(lake) == 0


def test_a_lock_held_for_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.lake, "LOCK_TIMEOUT_SECONDS", 0.1)
    with open_lake(tmp_path) as lake, FileLock(tmp_path / "catalog.sqlite.lock"):
        with pytest.raises(LakeBusyError, match="another process has held the lake"):
            lake.write(make_table)
        with pytest.raises(LakeBusyError, match="another process has held the lake"):
            open_lake(tmp_path)
        with open_lake(tmp_path, read_only=True) as reader:
            assert reader.snapshot() > 0, "a reader never waits for the lock"


class Recording:
    """Passes statements on and notes the commit."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, events: list[object]) -> None:
        self.connection = connection
        self.events = events

    def execute(self, query: str, *values: Any) -> duckdb.DuckDBPyConnection:
        if query == "COMMIT":
            self.events.append("COMMIT")
        return self.connection.execute(query, *values)

    def close(self) -> None:
        self.connection.close()


def test_new_files_and_their_folders_are_synced_before_the_commit(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut cannot be staged here, so the order of the calls stands for it."""
    events: list[object] = []
    really = os.fsync

    def fsync(handle: int) -> None:
        events.append(os.fstat(handle).st_ino)
        really(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(lake, "connection", Recording(lake.connection, events))
    before = parquet_files(tmp_path)

    lake.write(lambda con: insert(con, "a"))

    new = parquet_files(tmp_path) - before
    assert new
    synced = set(events[: events.index("COMMIT")])
    assert {path.stat().st_ino for path in new} | {path.parent.stat().st_ino for path in new} <= synced


def test_reading_a_lake_that_is_not_there_says_so_and_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotBuiltError, match="load something first"):
        open_lake(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


def test_a_read_only_lake_refuses_writes(lake: Lake, tmp_path: Path) -> None:
    with open_lake(tmp_path, read_only=True) as reader:
        with pytest.raises(LakeError, match="read-only"):
            reader.write(lambda con: insert(con, "a"))
        assert count(reader) == 0


def test_a_reader_changes_no_file(lake: Lake, tmp_path: Path) -> None:
    lake.write(lambda con: insert(con, "a"))
    lake.close()

    def files() -> dict[Path, bytes]:
        # SQLite keeps its write-ahead log, empty, and the log's index beside the catalog.
        found = [p for p in tmp_path.rglob("*") if p.is_file() and not p.name.endswith("-shm")]
        return {path: content for path in found if (content := path.read_bytes())}

    before = files()
    with open_lake(tmp_path, read_only=True) as reader:
        assert count(reader) == ROWS_PER_BATCH
    assert files() == before


@pytest.mark.parametrize("name", ["moved", "it's a [new] 100% place? #2 \u00fc"])
def test_a_lake_that_was_moved_opens_and_takes_writes(tmp_path: Path, name: str) -> None:
    with open_lake(tmp_path / "first") as lake:
        lake.write(make_table)
        lake.write(lambda con: insert(con, "a"))
    shutil.move(tmp_path / "first", tmp_path / name)
    with open_lake(tmp_path / name) as lake:
        assert count(lake) == ROWS_PER_BATCH
        lake.write(lambda con: insert(con, "b"))
    with open_lake(tmp_path / name, read_only=True) as lake:
        assert count(lake) == 2 * ROWS_PER_BATCH
    assert not (tmp_path / "first").exists()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_catalog_that_is_no_database_is_refused(tmp_path: Path, read_only: bool) -> None:
    (tmp_path / "catalog.sqlite").write_text("this is not a database, only a text of some length\n" * 40)
    with pytest.raises(LakeError, match="not a database"):
        open_lake(tmp_path, read_only=read_only)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(LakeError, match="cannot be made"):
        open_lake(tmp_path)


def test_a_data_file_that_is_gone_is_a_lake_error(lake: Lake, tmp_path: Path) -> None:
    lake.write(lambda con: insert(con, "a"))
    lake.close()
    for path in (tmp_path / "data" / "main" / "batch").rglob("*.parquet"):
        path.unlink()
    with (
        pytest.raises(LakeError, match="cannot be read"),
        open_lake(tmp_path, read_only=True) as reader,
    ):
        reader.connection.execute("SELECT sum(n) FROM lake.batch").fetchall()


def test_a_second_connection_sees_the_same_lake(lake: Lake) -> None:
    lake.write(lambda con: insert(con, "a"))
    assert lake.cursor().execute("SELECT count(*) FROM lake.batch").fetchall() == [(ROWS_PER_BATCH,)]


def test_extensions_come_from_their_packages_and_the_home_folder_stays_empty(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "DUCKDB"))}
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.worker", "open", str(tmp_path / "lake")],
        cwd=ROOT, env=env | {"HOME": str(home)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(home.rglob("*")) == []


def test_nothing_is_ever_downloaded() -> None:
    con = memory()
    rows = con.execute(
        "SELECT name, value FROM duckdb_settings() WHERE name IN "
        "('autoinstall_known_extensions', 'autoload_known_extensions')"
    ).fetchall()
    assert dict(rows) == {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    # No network client is loaded, so an address cannot be reached even by mistake.
    with pytest.raises(duckdb.Error, match="httpfs"):
        con.execute("SELECT * FROM read_csv('https://localhost:9/x.csv')")


def test_no_stored_column_can_lose_digits(lake: Lake) -> None:
    """Parquet has no 128-bit integer, so DuckDB would store it as a float; a float is never money."""
    columns = lake.connection.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE database_name = 'lake' "
        "AND schema_name = 'main'"
    ).fetchall()
    tables = {table for table, _, _ in columns}
    assert {"charge", "invoice", "posting", "statement_line", "bridge", "gap"} <= tables
    lossy = [c for c in columns if c[2] in ("HUGEINT", "UHUGEINT", "DOUBLE", "FLOAT")]
    assert lossy == []
    money = [c for c in columns if c[1].endswith(("_amount", "amount", "_cost", "_total")) and c[0] != "build"]
    assert len(money) > 10
    assert {kind for _, _, kind in money} == {"DECIMAL(38,12)"}
