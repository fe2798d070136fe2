"""A Cost and Usage Report of 1,000,000 lines in Parquet, loaded into a lake, beside a bare copy of it into DuckDB.

The copy is the least that any loader does, and checks, converts and keeps nothing: every column of the file as it is,
in an in-memory DuckDB with the same threads. A load judges every cell, maps the lines to charges, holds them to the
identities, writes them to the lake's Parquet files and syncs those. Each runs in a process of its own.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb

from chargeback.load import LoadOptions, load_charges
from store.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS: Final = 1_000_000
RUNS: Final = 3
REPORT: Final = Path(__file__).with_name("cur.sql")


@dataclass(frozen=True, slots=True)
class Result:
    """One run: what it took, and the most memory that its process held."""

    seconds: float
    cpu_seconds: float
    peak_mebibytes: float


def run(rows: int = ROWS) -> str:
    """Write the report, copy and load it in turn, and return the table: of each the fastest run."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "cur.parquet"
        columns = write_report(report, rows)
        size = report.stat().st_size / 2**20
        pairs = [(_alone(copied, report), _alone(loaded, report)) for _ in range(RUNS)]
    copy, load = (min(runs, key=lambda one: one.seconds) for runs in zip(*pairs, strict=True))
    title = f"CUR 2.0, {rows:,} lines x {columns} columns, {size:.0f} MiB of Parquet, best of {RUNS}"
    lines = [f"{title}\n  {'':<38}{'gputally load':>18}{'CREATE TABLE AS':>18}"]
    for label, ours, bare in (
        ("rows/s", rows / load.seconds, rows / copy.seconds),
        ("time, s", load.seconds, copy.seconds),
        ("CPU time, s", load.cpu_seconds, copy.cpu_seconds),
        ("peak memory, MiB", load.peak_mebibytes, copy.peak_mebibytes),
    ):
        form = ",.0f" if ours >= 100 else ".2f"
        lines.append(f"  {label:<38}{ours:>18{form}}{bare:>18{form}}   ratio {ours / bare:.2f}")
    return "\n".join(lines)


def write_report(path: Path, rows: int) -> int:
    """Write a report of so many lines, as AWS would; return how many columns it has."""
    with _duckdb() as con:
        query = REPORT.read_text(encoding="utf-8")
        con.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)", {"rows": rows})
        ((columns,),) = con.execute(f"SELECT count(*) FROM (DESCRIBE FROM '{path}')").fetchall()
    return int(columns)


def copied(report: Path) -> Result:
    """Copy the file into a table of an in-memory DuckDB."""
    with _duckdb() as con:
        return _timed(lambda: con.execute(f"CREATE TABLE copy AS SELECT * FROM '{report}'"))


def loaded(report: Path) -> Result:
    """Load the file as a user does, into a new lake."""
    with (
        tempfile.TemporaryDirectory(dir=report.parent) as folder,
        Lake.open(Path(folder, "lake.sqlite"), Path(folder, "data"), scratch=Path(folder, "scratch")) as lake,
    ):
        return _timed(lambda: load_charges(lake, [report], LoadOptions(provider="aws")))


def _duckdb() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("SET enable_progress_bar = false")
    return con


def _timed(work: Callable[[], object]) -> Result:
    began, cpu = time.perf_counter(), time.process_time()
    work()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    return Result(seconds, cpu_seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _alone(measured: Callable[[Path], Result], report: Path) -> Result:
    """Run in a new process, so that memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measured, report).result()


if __name__ == "__main__":
    print(run(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS))
