"""The spool's file: opened by one process only, checked, and moved aside when it is damaged."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from importlib import resources
from typing import TYPE_CHECKING, Final

from fleet.errors import GputallyError

if TYPE_CHECKING:
    from pathlib import Path

_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_SETTINGS: Final = (
    # One agent only, or two would push the same batches; and no shared memory file beside it.
    "PRAGMA locking_mode = EXCLUSIVE",
    # Space goes back to the file system after an outage; must come before the first table.
    "PRAGMA auto_vacuum = INCREMENTAL",
    "PRAGMA journal_mode = WAL",
    # NORMAL may take back the last commits when the power fails, and with them a sequence that the hub has seen.
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 256",
    "PRAGMA journal_size_limit = 1048576",
    "PRAGMA cache_size = -512",
)


class SpoolError(GputallyError):
    """The spool cannot be opened, read or written: in use, no permission, disk full, or just found damaged."""


def open_file(path: Path) -> sqlite3.Connection:
    """Open the spool, made for its owner alone if it is not there. sqlite3.Error or OSError when that fails.

    The whole file is read once, so that damage is found now and not when the hub asks for what is in it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    for setting in _SETTINGS:
        connection.execute(setting).fetchall()
    said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if said != "ok":
        error = sqlite3.DatabaseError(said)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
    connection.executescript((resources.files("exporters") / "spool_schema.sql").read_text("utf-8"))


def is_damage(error: BaseException) -> bool:
    """Whether an error means that the file is no (whole) database, so that trying again is of no use."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _DAMAGE  # the low byte is the kind, the rest the detail


def in_words(path: Path, error: BaseException) -> str:
    """What went wrong with the spool, for one line of a log."""
    if isinstance(error, OSError):
        return f"the spool {path} cannot be used: {error.strerror or error}"
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        return f"the spool {path} is in use by another process"
    return f"the spool {path} cannot be used: {error}"


def set_aside(path: Path) -> Path:
    """Rename a damaged spool to `NAME.corrupt-TIME`, in place of earlier ones, so that they cannot fill the disk.

    OSError when the folder does not allow it.
    """
    for old in [found for found in path.parent.iterdir() if found.name.startswith(f"{path.name}.corrupt-")]:
        old.unlink()
    target = path.with_name(f"{path.name}.corrupt-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    path.rename(target)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    return target
