"""Open the DuckLake of a workspace and write to it safely.

Embedded mode keeps the catalog in a SQLite file and the data in local Parquet. Several processes may use it at once:
readers never wait; a writer holds a file lock beside the catalog for its whole transaction, because DuckLake does not
retry a busy SQLite catalog at commit. DuckDB syncs the catalog but not its Parquet files, so a write syncs them before
it commits: what was acknowledged survives a power cut.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

import duckdb
from filelock import FileLock, Timeout

from fleet.errors import LakeBusyError, LakeError, NotBuiltError
from store.durability import NewFiles
from store.extensions import load_extensions
from store.migrations import migrate, require_current
from store.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Result = TypeVar("Result")
Connection: TypeAlias = duckdb.DuckDBPyConnection
"""What packages above `store` call a connection: they may pass it on, and never import duckdb."""

LOCK_TIMEOUT_SECONDS = 120.0
MAX_ATTEMPTS = 8
FIRST_PAUSE_SECONDS = 0.05
RETRIED = (
    "database is locked",
    "Transaction conflict",
    "TransactionContext Error: Conflict",
    "database schema is locked",
)
"""Parts of DuckDB's messages that mean: nothing was written, the same transaction may pass when tried again."""


class Lake:
    """One workspace's lake, attached as `lake` to a private in-memory DuckDB.

    Use `Lake.open(...)` in a `with` block. `connection` reads; every change goes through `write`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, data: Path, lock: FileLock) -> None:
        """Hold an attached connection; callers use `open`."""
        self.connection = connection
        self._new_files = NewFiles(data)
        self._lock = lock

    @classmethod
    def open(
        cls,
        catalog: Path,
        data: Path,
        *,
        read_only: bool = False,
        threads: int | None = None,
        scratch: Path | None = None,
    ) -> Self:
        """Attach the lake, creating and migrating it first unless `read_only`.

        Raises NotBuiltError when it does not exist and `read_only`; LakeBusyError when another process holds the lock
        for too long; LakeError for anything DuckDB refuses.
        """
        if read_only and not catalog.is_file():
            raise NotBuiltError(f"no lake at {catalog}: load something first")
        if not read_only:
            _make_folders(catalog.parent, data)
        lock = FileLock(f"{catalog}.lock", timeout=LOCK_TIMEOUT_SECONDS, poll_interval=0.005)
        con = _connect(threads, scratch)
        lake = cls(con, data, lock)
        if read_only:
            _retried(lambda: _attach(con, catalog, data, read_only=True))
            require_current(con)
        else:
            with lake._locked():
                _retried(lambda: _attach(con, catalog, data, read_only=False))
            lake.write(migrate)
        return lake

    def __enter__(self) -> Self:
        """Return the lake itself."""
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Detach. What the disk or the memory refused while reading is the user's to mend: it becomes a LakeError."""
        self.close()
        if isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException):
            raise LakeError(f"the lake cannot be read: {_first_line(error)}") from error

    def close(self) -> None:
        """Close the connection; open transactions are rolled back."""
        self.connection.close()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a second connection to the same attached lake, for use in another thread."""
        return self.connection.cursor()

    def snapshot(self) -> int:
        """Return the id of the newest committed snapshot of the lake."""
        row = self.connection.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchone()
        return int(row[0]) if row else 0

    def prepare(self, work: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        """Run `work`, which touches temporary tables only, outside any transaction; LakeError as from `write`."""
        return _retried(lambda: work(self.connection))

    def write(self, change: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        """Run `change` in one transaction: lock, begin, change, sync new files, commit.

        It is run again from the start when the catalog was busy or another writer won, so it must be idempotent: decide
        by batch or snapshot id whether there is anything to do. On any other error nothing is left behind.
        """
        with self._locked():
            return _retried(lambda: self._transaction(change))

    def _transaction(self, change: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        self._new_files.look()
        self.connection.execute("BEGIN")
        try:
            result = change(self.connection)
            self._new_files.sync()
            self.connection.execute("COMMIT")
        except BaseException:
            _rollback(self.connection)
            raise
        return result

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except Timeout:
            raise LakeBusyError(
                f"another process has held the lake for {LOCK_TIMEOUT_SECONDS:.0f} s; try again"
            ) from None


def memory() -> duckdb.DuckDBPyConnection:
    """Return a private DuckDB with no lake, set up as the lake's connections are: for tests and file conversion."""
    return _connect(None, None)


def _connect(threads: int | None, scratch: Path | None) -> duckdb.DuckDBPyConnection:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    if threads:
        settings["threads"] = threads
    con = duckdb.connect(config=settings)
    load_extensions(con)
    con.execute("SET TimeZone = 'UTC'")
    con.execute("SET enable_progress_bar = false")
    if scratch:
        con.execute(f"SET temp_directory = {literal(str(scratch))}")
    return con


def _make_folders(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LakeError(f"folder {folder} cannot be made: {error.strerror}") from error


def _attach(con: duckdb.DuckDBPyConnection, catalog: Path, data: Path, *, read_only: bool) -> None:
    mode = "READ_ONLY, " if read_only else ""
    # The data path is normalised and overridden: a workspace may be moved, and a doubled slash would make orphan
    # clean-up mistake live files for dead ones. Inlining is off: small tables inlined in the catalog cost more.
    con.execute(
        f"ATTACH {literal(f'ducklake:sqlite:{catalog}')} AS lake ({mode}DATA_PATH {literal(os.path.normpath(data))}, "
        "OVERRIDE_DATA_PATH true, DATA_INLINING_ROW_LIMIT 0, META_BUSY_TIMEOUT 5000, META_JOURNAL_MODE 'WAL')"
    )


def _retried(action: Callable[[], Result]) -> Result:
    pause_seconds = FIRST_PAUSE_SECONDS
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return action()
        except duckdb.Error as error:
            if not any(part in str(error) for part in RETRIED):
                raise LakeError(f"the lake refused: {_first_line(error)}") from error
            if attempt == MAX_ATTEMPTS:
                raise LakeBusyError(f"the lake stayed busy for {attempt} attempts: {_first_line(error)}") from error
        time.sleep(pause_seconds * random.uniform(0.5, 1.5))  # noqa: S311 - jitter between writers, not a secret
        pause_seconds *= 2
    raise AssertionError("unreachable: the last attempt returns or raises")


def _rollback(con: duckdb.DuckDBPyConnection) -> None:
    try:
        con.execute("ROLLBACK")
    except duckdb.Error:
        # The failed statement already ended the transaction; the first error is the one worth showing.
        return


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
