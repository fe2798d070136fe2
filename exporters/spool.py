"""Batches on disk until the hub has them, with the agent's own state, in one SQLite file.

A window's batch and the state that follows from it are one transaction, so after a kill neither is there without the
other. A sequence is never given twice, even when all that was spooled has been acknowledged.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import threading
import uuid
from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from exporters.spool_file import SpoolError, in_words, is_damage, open_file, set_aside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

LOG = logging.getLogger("gputally.spool")
_FREE_PAGES: Final = 256
"""Free pages are kept for the next batches; more than this many go back to the file system."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """A batch that the hub has not acknowledged; `payload` is the encoded message."""

    sequence: int
    boot_id: str
    row_count: int
    window_end_second: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class SpoolStatus:
    """What is in a spool, and what has become of the batches before: `dropped` and `failed` count by reason."""

    spool_id: str
    newest_sequence: int
    batch_count: int
    payload_bytes: int
    oldest_window_end_second: int | None
    acked_batches: int
    dropped_batches: Mapping[str, int]
    failed_events: Mapping[str, int]


class Spool:
    """One agent's spool; may be used from several threads. Every method raises SpoolError when the file fails.

    `limit_bytes` bounds the payloads; the file takes some percent more. SpoolError already at the start when the
    file cannot be used at all.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._payload_bytes = 0
        self._saved: SpoolStatus | None = None
        # Counted while the file could not be written; saved with the next transaction.
        self._unsaved: Counter[tuple[str, str]] = Counter()
        with self._transaction():
            pass

    @property
    def status(self) -> SpoolStatus:
        """The spool as of its last transaction, and what could not be written since; waits for nobody."""
        return self._status

    def append(
        self,
        boot_id: str,
        make: Callable[[int, str], bytes],
        *,
        row_count: int,
        window_end_second: int,
        state: Mapping[str, Any] | None = None,
    ) -> int:
        """Spool what `make(sequence, spool_id)` returns, the oldest batches giving way; returns its sequence.

        `state` is kept as by `state_put`, in the same transaction. On SpoolError neither is there, and the batch
        counts as dropped; the same goes for one larger than the whole spool. Errors of `make` pass through.
        """
        with self._lock:
            try:
                with self._transaction() as connection:
                    sequence = self._next_sequence(connection)
                    payload = make(sequence, self._spool_id)
                    self._make_room(connection, len(payload))
                    connection.execute(
                        "INSERT INTO batch VALUES (?, ?, ?, ?, ?)",
                        (sequence, boot_id, row_count, window_end_second, payload),
                    )
                    self._payload_bytes += len(payload)
                    for key, value in (state or {}).items():
                        _put(connection, key, value)
            except SpoolError:
                self._count_later("dropped", "spool_failed")
                raise
        return sequence

    def next_batches(self, after: int, limit: int) -> list[Spooled]:
        """Up to `limit` batches with a sequence above `after`, the oldest first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT sequence, boot_id, row_count, window_end_second, payload FROM batch "
                "WHERE sequence > ? ORDER BY sequence LIMIT ?",
                (after, limit),
            )
            return [Spooled(*row) for row in rows]

    def ack(self, boot_id: str, spool_id: str, sequence: int) -> bool:
        """Forget a batch that the hub has; False if it is not here (acknowledged before, or dropped meanwhile)."""
        return self._settle(boot_id, spool_id, sequence, ("acked", ""))

    def drop(self, boot_id: str, spool_id: str, sequence: int, reason: str) -> bool:
        """Give up a batch and count it under a reason; False if it is not here."""
        return self._settle(boot_id, spool_id, sequence, ("dropped", reason))

    def state_get(self, key: str) -> Any:
        """The JSON value kept under a key, None without one."""
        with self._reading() as connection:
            row = connection.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
            return None if row is None else json.loads(row[0])

    def state_put(self, key: str, value: Any) -> None:
        """Keep a JSON value under a key."""
        with self._transaction() as connection:
            _put(connection, key, value)

    def close(self) -> None:
        """Give the file back; it is opened again if the spool is used again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _settle(self, boot_id: str, spool_id: str, sequence: int, counter: tuple[str, str]) -> bool:
        with self._transaction() as connection:
            if spool_id != self._spool_id:
                return False
            found = connection.execute(
                "SELECT length(payload) FROM batch WHERE sequence = ? AND boot_id = ?", (sequence, boot_id)
            ).fetchone()
            if found is None:
                return False
            self._forget(connection, sequence, found[0], counter)
        self._give_space_back()
        return True

    def _forget(self, connection: sqlite3.Connection, sequence: int, size: int, counter: tuple[str, str]) -> None:
        connection.execute("DELETE FROM batch WHERE sequence = ?", (sequence,))
        _count(connection, counter, 1)
        self._payload_bytes -= size

    def _make_room(self, connection: sqlite3.Connection, wanted_bytes: int) -> None:
        if wanted_bytes > self._limit_bytes:
            raise SpoolError(f"a batch of {wanted_bytes} bytes is larger than the spool may be")
        while self._payload_bytes + wanted_bytes > self._limit_bytes:
            sequence, size = connection.execute(
                "SELECT sequence, length(payload) FROM batch ORDER BY sequence LIMIT 1"
            ).fetchone()
            self._forget(connection, sequence, size, ("dropped", "spool_full"))

    def _next_sequence(self, connection: sqlite3.Connection) -> int:
        connection.execute("UPDATE fact SET value = value + 1 WHERE name = 'newest_sequence'")
        return int(_fact(connection, "newest_sequence"))

    def _give_space_back(self) -> None:
        with self._reading() as connection:
            if connection.execute("PRAGMA freelist_count").fetchone()[0] > _FREE_PAGES:
                connection.executescript("PRAGMA incremental_vacuum")  # a step for each page; execute() takes one

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; an error of the file becomes a SpoolError."""
        with self._lock:
            try:
                yield self._connected()
            except (sqlite3.Error, OSError) as error:
                raise self._failed(error) from None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing on disk; the status follows what was committed."""
        with self._reading() as connection:
            before = self._payload_bytes
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                for counter, total in self._unsaved.items():
                    _count(connection, counter, total)
                status = self._read_status(connection)
                connection.execute("COMMIT")
            except BaseException:
                self._payload_bytes = before
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            self._unsaved.clear()
            self._saved = self._status = status

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = open_file(self._path)
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise
                self._set_aside(error)
                self._connection = open_file(self._path)
            self._begin(self._connection)
        return self._connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT OR IGNORE INTO fact VALUES ('spool_id', ?)", (str(uuid.uuid4()),))
        connection.execute("INSERT OR IGNORE INTO fact VALUES ('newest_sequence', 0)")
        connection.execute("COMMIT")
        self._spool_id = str(_fact(connection, "spool_id"))
        self._payload_bytes = connection.execute("SELECT coalesce(sum(length(payload)), 0) FROM batch").fetchone()[0]
        self._saved = self._read_status(connection)
        self._status = _with_unsaved(self._saved, self._unsaved)

    def _failed(self, error: sqlite3.Error | OSError) -> SpoolError:
        """Whatever state the connection is in now, the next use starts with a fresh one."""
        with contextlib.suppress(sqlite3.Error):
            self.close()
        self._connection = None
        if is_damage(error):
            try:
                self._set_aside(error)
            except OSError as denied:
                return SpoolError(in_words(self._path, denied))
        return SpoolError(in_words(self._path, error))

    def _count_later(self, name: str, reason: str) -> None:
        self._unsaved[name, reason] += 1
        if self._saved is not None:
            self._status = _with_unsaved(self._saved, self._unsaved)

    def _set_aside(self, error: BaseException) -> None:
        target = set_aside(self._path)
        self._count_later("failed", "spool_corrupt")
        LOG.error("the spool is damaged and was set aside", extra={"file": target, "reason": error})

    def _read_status(self, connection: sqlite3.Connection) -> SpoolStatus:
        oldest = connection.execute("SELECT window_end_second FROM batch ORDER BY sequence LIMIT 1").fetchone()
        counters: dict[str, dict[str, int]] = {"acked": {}, "dropped": {}, "failed": {}}
        for name, reason, total in connection.execute("SELECT name, reason, total FROM counter"):
            counters.setdefault(name, {})[reason] = total
        return SpoolStatus(
            spool_id=self._spool_id,
            newest_sequence=int(_fact(connection, "newest_sequence")),
            batch_count=connection.execute("SELECT count(*) FROM batch").fetchone()[0],
            payload_bytes=self._payload_bytes,
            oldest_window_end_second=None if oldest is None else oldest[0],
            acked_batches=counters["acked"].get("", 0),
            dropped_batches=MappingProxyType(counters["dropped"]),
            failed_events=MappingProxyType(counters["failed"]),
        )


def _with_unsaved(status: SpoolStatus, unsaved: Mapping[tuple[str, str], int]) -> SpoolStatus:
    dropped, failed = Counter(status.dropped_batches), Counter(status.failed_events)
    for (name, reason), total in unsaved.items():
        (dropped if name == "dropped" else failed)[reason] += total
    return replace(status, dropped_batches=dropped, failed_events=failed)


def _fact(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()[0]


def _put(connection: sqlite3.Connection, key: str, value: Any) -> None:
    connection.execute("REPLACE INTO state VALUES (?, ?)", (key, json.dumps(value, allow_nan=False)))


def _count(connection: sqlite3.Connection, counter: tuple[str, str], more: int) -> None:
    connection.execute("INSERT OR IGNORE INTO counter VALUES (?, ?, 0)", counter)
    connection.execute("UPDATE counter SET total = total + ? WHERE name = ? AND reason = ?", (more, *counter))
