"""The real sample that the FinOps Foundation publishes: refused as it is, priced to the last digit once mended."""

from __future__ import annotations

import csv
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from chargeback.build import build_period
from chargeback.load import load_files
from fleet.config import parse_config
from services.workspace import Workspace
from tests.chargeback.ledger import empty_lake, memory_ledger, read_rows, write_rows
from tests.chargeback.sources.focus_files import staged, unpacked
from tests.program import gputally, new_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from store.lake import Lake

SAMPLE = "focus-1.0-real-sample"
G5_HOUR = "$1.624 per On Demand Linux g5.4xlarge Instance Hour"
PARTIAL = "i-09ba12e1l5743720b"


@pytest.fixture(scope="module")
def new_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Lake]]:
    yield from empty_lake(tmp_path_factory.mktemp("lakes"))


def test_e1_the_sample_is_quarantined_and_explained(tmp_path: Path, golden: Callable[[str, str | bytes], None]) -> None:
    """Its EffectiveCost was rounded to whole dollars in 613 rows of AWS; Oracle leaves it 0 in 4 more."""
    path, workspace = unpacked(tmp_path, SAMPLE), new_workspace(tmp_path / "ws")
    done = gputally("-C", workspace, "load", "charges", path, "--explain")
    assert done.returncode == 1
    assert done.stderr == (
        "gputally: focus-1.0-real-sample.csv: quarantined, what it said before still counts: I6 in 617 rows (row 2: "
        "'0.000000000000' differs from BilledCost 0.000000800000 without a commitment)\n"
    )
    golden("load/explain-focus-sample.txt", done.stdout)
    with Workspace.at(workspace).open_lake(read_only=True) as lake:
        con = lake.connection
        assert con.execute("SELECT count(*) FROM lake.charge").fetchall() == [(0,)]
        kept = "SELECT DISTINCT identity, severity, row_count::INT FROM lake.charge_finding ORDER BY ALL"
        assert con.execute(kept).fetchall() == [
            ("I1", "warn", 28), ("I13", "warn", 1000), ("I14", "warn", 942), ("I15", "warn", 1), ("I5", "warn", 3),
            ("I6", "error", 617),
        ]  # fmt: skip


def test_e1_i6_finds_exactly_the_rounded_rows(tmp_path: Path) -> None:
    path, con = unpacked(tmp_path, SAMPLE), memory_ledger()
    counts = {found.identity: found.row_count for found in staged(con, path)}
    rounded = [
        row["ProviderName"]
        for row in read_rows(path)
        if row["ChargeCategory"] == "Usage"
        and row["CommitmentDiscountId"] in ("", "NULL")
        and Decimal(row["BilledCost"]) != Decimal(row["EffectiveCost"])
    ]
    assert (rounded.count("AWS"), rounded.count("Oracle"), len(rounded)) == (613, 4, counts["I6"])


def test_e7_a_partial_hour_of_a_gpu_lands_on_its_holder(new_lake: Callable[[], Lake], tmp_path: Path) -> None:
    """With EffectiveCost as billed, the month's 8 g5 rows are the cost of 8 nodes: 0.296111 h x 1.624 = 0.480884264."""
    sample = unpacked(tmp_path, SAMPLE)
    rows = read_rows(sample)
    for row in rows:
        if row["CommitmentDiscountId"] in ("", "NULL"):
            row["EffectiveCost"] = row["BilledCost"]
    with sample.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    g5 = {row["ResourceId"]: row for row in rows if row["ChargeDescription"] == G5_HOUR}
    assert len(g5) == 8
    utc = {
        key: [f"{row[f'ChargePeriod{end}'].replace(' ', 'T')}Z" for end in ("Start", "End")] for key, row in g5.items()
    }
    nodes = [
        {"node": f"n-{key}", "gpu_count": "1", "valid_from": utc[key][0], "valid_to": utc[key][1], "resource_id": key}
        for key in g5
    ]
    held = [
        {"start": utc[key][0], "end": utc[key][1], "gpus": "1", "node": f"n-{key}", "team": f"team {key}"} for key in g5
    ]
    lake = new_lake()
    load_files(lake, "charges", [sample])
    load_files(lake, "inventory", [write_rows(tmp_path / "inventory.csv", "inventory", nodes)])
    load_files(lake, "holdings", [write_rows(tmp_path / "holdings.csv", "holdings", held)])
    build_period(lake, parse_config(""), "2024-09")
    con = lake.connection
    posted = con.execute(
        "SELECT team, sum(amount) FROM lake.posting WHERE step = 'node' AND to_account LIKE 'team:%' GROUP BY team"
    ).fetchall()
    assert dict(posted) == {
        f"team {key}": Decimal(row["PricingQuantity"]) * Decimal("1.624") for key, row in g5.items()
    }
    assert dict(posted)[f"team {PARTIAL}"] == Decimal("0.480884264")
    statement = con.execute(
        "SELECT amount FROM lake.statement_line WHERE team = ? AND category = 'held'", [f"team {PARTIAL}"]
    ).fetchall()
    assert statement == [(Decimal("0.48"),)]
