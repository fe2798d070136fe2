"""A process that spools windows and pushes them, as an agent does, only faster.

Usage: pusher.py SPOOL LIMIT_BYTES PORT COUNT. Tells on standard output `sequence rows` for each batch that is on
disk, every hundredth time followed by its own memory in KiB and its number of threads. After COUNT batches, 0 for
endless, it drains for some seconds and ends.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from pathlib import Path

from exporters.batch import Batch
from exporters.push import Push
from exporters.push_channel import PushSettings
from exporters.spool import Spool
from fleet.telemetry import HoldingRow


def rows(number: int) -> tuple[HoldingRow, ...]:
    return tuple(
        HoldingRow(
            device=f"GPU-{place}",
            from_second=number * 60,
            to_second=number * 60 + 60,
            gpu_millionths=1_000_000,
            owner_kind="pod",
            source="podresources",
            confidence="exact",
            pod_uid=f"{number}-{place}",
        )
        for place in range(64 + number % 5)
    )


def memory_kibibytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def main() -> None:
    path, limit_bytes, port, count = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    spool = Spool(path, limit_bytes)
    settings = PushSettings(address=f"127.0.0.1:{port}", first_pause_seconds=0.01, longest_pause_seconds=0.1)
    push = Push(spool, settings)
    push.start()
    for number in range(count) if count else itertools.count():
        held = rows(spool.status.newest_sequence + 1)

        def make(sequence: int, spool_id: str, held: tuple[HoldingRow, ...] = held) -> bytes:
            return Batch(
                cluster="c1",
                node="n1",
                boot_id="boot",
                spool_id=spool_id,
                sequence=sequence,
                agent_version="0",
                tables={"held_window": held},
            ).encoded()

        sequence = spool.append("boot", make, row_count=len(held), window_end_second=int(time.time()))
        push.wake()
        more = f" {memory_kibibytes()} {threading.active_count()}" if number % 100 == 99 else ""
        sys.stdout.write(f"{sequence} {len(held)}{more}\n")
        sys.stdout.flush()
    push.stop(20 if port else 0)
    spool.close()


if __name__ == "__main__":
    main()
