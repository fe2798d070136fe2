"""What an agent does with the rows of a window, some twenty times a second: on disk first, then to the hub.

Usage: spooling_agent.py FOLDER NODE ADDRESS SECONDS. Its spool is FOLDER/NODE.sqlite; a line `sequence` in
FOLDER/NODE.told is a batch that is on disk. After that time, counted from the first start, it drains and ends.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path

from exporters.batch import Batch
from exporters.push import Push
from exporters.push_channel import PushSettings
from exporters.spool import Spool
from fleet.telemetry import WINDOW_SECONDS, DeviceWindowRow

BATCHES_PER_SECOND = 20
DRAIN_SECONDS = 60.0


def row_count(sequence: int) -> int:
    """Batches differ in length too."""
    return 1 + sequence % 3


def windows(node: str, sequence: int) -> tuple[DeviceWindowRow, ...]:
    """Rows that tell which batch they are of."""
    start = int(time.time()) // WINDOW_SECONDS * WINDOW_SECONDS
    return tuple(
        DeviceWindowRow(
            device=f"GPU-{node}-{place}", window_start_second=start, window_ms=60_000, observed_ms=60_000,
            state="ok", busy_observed_ms=60_000, busy_ms=0, energy_millijoules=sequence,
        )
        for place in range(row_count(sequence))
    )  # fmt: skip


def main() -> None:
    folder, node, address, until = Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])
    logging.disable(logging.WARNING)  # that the hub is away is what is wanted here
    spool = Spool(folder / f"{node}.sqlite", 64 << 20)
    push = Push(spool, PushSettings(address=address, first_pause_seconds=0.05, longest_pause_seconds=0.5))
    push.start()

    def make(sequence: int, spool_id: str) -> bytes:
        return Batch(
            cluster="c1", node=node, boot_id="boot", spool_id=spool_id, sequence=sequence, agent_version="0",
            tables={"device_window": windows(node, sequence)},
        ).encoded()  # fmt: skip

    with (folder / f"{node}.told").open("a") as told:
        while time.time() < until:
            count = row_count(spool.status.newest_sequence + 1)
            sequence = spool.append("boot", make, row_count=count, window_end_second=int(time.time()))
            os.write(told.fileno(), f"{sequence}\n".encode())
            push.wake()
            time.sleep(1 / BATCHES_PER_SECOND)
    push.stop(DRAIN_SECONDS)
    spool.close()


if __name__ == "__main__":
    main()
