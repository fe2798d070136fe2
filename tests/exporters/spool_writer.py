"""A process that spools batches until it is killed, and says on standard output what it was told is on disk.

Usage: spool_writer.py FILE [LIMIT_FILE_BYTES]. With a limit the system refuses to let the file grow beyond it.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from exporters.spool import Spool
from exporters.spool_file import SpoolError


def main() -> None:
    spool = Spool(Path(sys.argv[1]), 50_000_000)
    if len(sys.argv) > 2:
        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    while True:
        made: list[int] = []

        def make(sequence: int, spool_id: str, made: list[int] = made) -> bytes:
            made.append(sequence)
            return f"{spool_id}:{sequence}:".encode() * 400

        try:
            window = (spool.state_get("window") or 0) + 1
            spool.append("boot", make, row_count=1, window_end_second=60, state={"window": window})
        except SpoolError as error:
            dropped = dict(spool.status.dropped_batches)
            sys.stdout.write(f"full {error} {dropped}\n")
            return
        sys.stdout.write(f"{made[0]} {window}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
