"""The report of the bench is one that loads: each line counts, and no identity is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import charges
from chargeback.load import LoadOptions, load_charges
from store.lake import Lake

if TYPE_CHECKING:
    from pathlib import Path


def test_the_report_of_the_bench_breaks_no_identity(tmp_path: Path) -> None:
    report = tmp_path / "cur.parquet"
    assert charges.write_report(report, 40_000) > 100
    with Lake.open(tmp_path / "lake.sqlite", tmp_path / "data") as lake:
        (verdict,) = load_charges(lake, [report], LoadOptions(provider="aws"))
        lines = lake.connection.execute("SELECT count(*), count(DISTINCT x_line_type) FROM lake.charge").fetchall()
    assert (verdict.broken, verdict.loaded.outcome, lines) == ((), "loaded", [(40_000, 5)])
