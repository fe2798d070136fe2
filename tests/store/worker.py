"""A separate process that works on a lake, for the tests that need several: `python -m tests.store.worker VERB ...`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from store.lake import Lake

if TYPE_CHECKING:
    import duckdb

ROWS_PER_BATCH = 7


def open_lake(folder: Path, *, read_only: bool = False) -> Lake:
    """The lake of a test folder."""
    return Lake.open(folder / "catalog.sqlite", folder / "data", read_only=read_only, threads=1)


def make_table(con: duckdb.DuckDBPyConnection) -> None:
    """The table that writers fill."""
    con.execute("CREATE TABLE IF NOT EXISTS lake.batch (batch VARCHAR, n BIGINT)")


def insert(con: duckdb.DuckDBPyConnection, batch: str) -> None:
    """Write a batch unless it is there: what `Lake.write` asks of every change."""
    if con.execute("SELECT 1 FROM lake.batch WHERE batch = ? LIMIT 1", [batch]).fetchone() is None:
        con.execute("INSERT INTO lake.batch SELECT ?, range FROM range(?)", [batch, ROWS_PER_BATCH])


def acknowledged(path: Path) -> list[str]:
    """Batches whose write returned; a line cut off by a kill was never acknowledged."""
    text = path.read_text() if path.exists() else ""
    return text.split("\n")[:-1]


def write(folder: Path, name: str, ack: Path, until: float, batches: int) -> None:
    """Write batches in order, acknowledge each on disk, until the time or the number is reached; resume by acks."""
    done = set(acknowledged(ack))
    with open_lake(folder) as lake, ack.open("a") as stream:
        for number in range(batches):
            batch = f"{name}-{number}"
            if batch in done:
                continue
            if time.time() > until:
                return
            lake.write(lambda con, batch=batch: insert(con, batch))
            stream.write(f"{batch}\n")
            stream.flush()
            os.fsync(stream.fileno())


def read(folder: Path, until: float) -> None:
    """Count again and again, on one connection and on fresh ones; a count may only grow, by whole batches."""
    last = 0
    while time.time() < until:
        with open_lake(folder, read_only=True) as lake:
            for _ in range(10):
                ((count,),) = lake.connection.execute("SELECT count(*) FROM lake.batch").fetchall()
                assert count % ROWS_PER_BATCH == 0, f"part of a batch was visible: {count} rows"
                assert count >= last, f"rows were lost: {last}, then {count}"
                last = count
    assert last > 0


def main(verb: str, folder: str, *rest: str) -> None:
    """Run one verb."""
    if verb == "write":
        name, ack, until, batches = rest
        write(Path(folder), name, Path(ack), float(until), int(batches))
    elif verb == "read":
        read(Path(folder), float(rest[0]))
    elif verb == "open":
        open_lake(Path(folder)).close()
    else:
        raise SystemExit(f"no verb {verb}")


if __name__ == "__main__":
    main(*sys.argv[1:])
