"""Short words for what tests do with a spool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exporters.spool import Spool


def payload(sequence: int, spool_id: str) -> bytes:
    return f"{spool_id}/{sequence}".encode()


def append(spool: Spool, *, size: int = 0, **more: Any) -> int:
    def make(sequence: int, spool_id: str) -> bytes:
        return payload(sequence, spool_id).ljust(size, b".")

    return spool.append("boot", make, row_count=64, window_end_second=60, **more)


def sequences(spool: Spool) -> list[int]:
    return [spooled.sequence for spooled in spool.next_batches(0, 10_000)]


def ack(spool: Spool, sequence: int) -> bool:
    return spool.ack("boot", spool.status.spool_id, sequence)
