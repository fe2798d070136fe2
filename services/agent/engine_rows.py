"""Rows of model servers that wait for the next batch, bounded so that the hub takes it whatever servers make up."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final

from fleet.telemetry import TABLES, WINDOW_SECONDS, columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.telemetry import Row

MOST_ROWS: Final = 8192
"""Of each table in one batch."""
MOST_BYTES: Final = 2 * 1024 * 1024
"""The same. A hub takes batches of 8 MiB, and most of that is for devices: what it refuses is lost for all."""
_VALUE_BYTES: Final = 8
_TABLES: Final = {row: table for table, row in TABLES.items()}


class PendingRows:
    """Rows by table, in the order in which they came. Each table has room of its own: latencies take none of tokens."""

    def __init__(self) -> None:
        """Nothing waits."""
        self._rows: dict[str, list[Row]] = {}
        self._bytes: Counter[str] = Counter()
        self._since: int | None = None
        self.refused = 0
        """How many rows there was no room for."""

    def add(self, rows: Iterable[Row], second: int) -> None:
        """Keep rows, as many as there is room for."""
        for row in rows:
            table = _TABLES[type(row)]
            kept, size = self._rows.setdefault(table, []), _bytes(table, row)
            if len(kept) >= MOST_ROWS or self._bytes[table] + size > MOST_BYTES:
                self.refused += 1
                continue
            kept.append(row)
            self._bytes[table] += size
            if self._since is None:
                self._since = second

    def have_waited(self, second: int) -> bool:
        """Whether there are rows, and the first has waited for the time of a window."""
        return self._since is not None and not 0 <= second - self._since < WINDOW_SECONDS

    def take(self) -> dict[str, tuple[Row, ...]]:
        """Take all rows out."""
        taken = {table: tuple(rows) for table, rows in self._rows.items() if rows}
        self._rows, self._since = {}, None
        self._bytes.clear()
        return taken


def _bytes(table: str, row: Row) -> int:
    """What a row takes in a batch: a whole number for each column, which for a text says where it ends."""
    count, texts = _shape(table)
    return count * _VALUE_BYTES + sum(len((getattr(row, name) or "").encode(errors="replace")) for name in texts)


@cache
def _shape(table: str) -> tuple[int, tuple[str, ...]]:
    described = columns(table)
    return len(described), tuple(column.name for column in described if column.kind is str)
