"""`gputally assets` in every form, as golden files, and `gputally explain` down to the row of an asset."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from chargeback.build import build_period
from chargeback.load import load_files
from fleet.errors import InputError
from services.workspace import Workspace
from tests.month import INVENTORY, write_lines
from tests.program import gputally, new_workspace, printed, refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OCTOBER = "2026-10-01T00:00:00Z,2026-11-01T00:00:00Z"
ASSETS = (
    "cluster,node,capex,salvage,months,in_service_from,power_price_kwh,pue,rated_kw,base_kw,colo_monthly,support_monthly,"
    "staff_monthly,currency"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """October 2026: the node of oracle O12 in its seventh month, one of an unknown node, and one in yen."""
    folder = new_workspace(tmp_path_factory.mktemp("owned") / "ws")
    files = {
        "inventory": [INVENTORY, f"c,n1,8,{OCTOBER},own,", f"c,n2,4,{OCTOBER},own,"],
        "holdings": ["start,end,gpus,node,team", f"{OCTOBER},8,n1,ann"],
        "assets": [
            ASSETS, "c,n1,320000,20000,48,2026-04-01T00:00:00Z,0.11,1.35,10.2,0.9,1500,1600,2100,USD",
            "c,=gone,1200,0,12,2026-10-01T00:00:00Z,0,1,0,0,0,0,0,USD",
            "c,n2,3000000,0,36,2026-10-01T00:00:00Z,25,1.2,2,0,0,0,10000,JPY",
        ],
    }  # fmt: skip
    workspace = Workspace.at(folder)
    with workspace.open_lake() as lake:
        for kind, lines in files.items():
            load_files(lake, kind, [write_lines(folder / f"{kind}.csv", *lines)])
        build_period(lake, workspace.config, "2026-10")
    return folder


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_golden(built: Path, form: str, golden: Callable[[str, str | bytes], None]) -> None:
    ending = "txt" if form == "table" else form
    golden(f"bill/assets.{ending}", printed("-C", built, "assets", "2026-10", "--format", form))


def test_o12_what_a_gpu_hour_costs(built: Path) -> None:
    """12,576.9368 over 5,952 GPU-hours of capacity, and over 60 % of them."""
    rows = list(csv.DictReader(StringIO(printed("-C", built, "assets", "2026-10", "--format", "csv"))))
    row = next(row for row in rows if row["node"] == "n1")
    assert row["total"] == "12576.936800000000"
    assert float(row["gpu_hours"]) == 5952
    assert (row["per_gpu_hour"][:8], row["per_gpu_hour_at_target"][:9]) == ("2.113060", "3.5217676")
    table = printed("-C", built, "assets", "2026-10")
    assert "2.113061" in table
    assert "3.521768" in table
    assert "2.641326" in printed("-C", built, "assets", "2026-10", "--target", "80")


def test_explain_leads_to_the_asset_and_its_part(built: Path) -> None:
    text = printed("-C", built, "explain", "2026-10", "--team", "ann", "--category", "held", "--charges", "9")
    assert "assets.csv row 2, depreciation of c/n1, month 7 of 48, 2026-10-01 00:00 UTC" in text
    assert "1,126.936800 of 1,126.9368 USD" in text
    assert "rated power of c/n1, 7588.800 kWh x PUE 1.35 x 0.11" in text


def test_a_month_that_is_not_built_is_a_clear_outcome(built: Path) -> None:
    assert refusal(gputally("-C", built, "assets", "2026-09")).startswith("2026-09 has not been built")


@pytest.mark.parametrize(
    ("row", "where"),
    [
        ("c,n,100,101,12,2026-10-01T00:00:00Z,,,,,,,,", "salvage"),
        ("c,n,100,1,0,2026-10-01T00:00:00Z,,,,,,,,", "months"),
        ("c,n,100,1,12,2026-10-01T00:00:00Z,1,0.9,,,,,,", "pue"),
        ("c,n1,9,1,12,2026-10-01T00:00:00Z,,,,,,,,", "entered service at the same time in row 2"),
        ("c,n1,9,1,12,2026-11-01T00:00:00Z,1,,,,,,,", "has its power in row 2 too"),
    ],
)
def test_an_asset_that_cannot_be_is_refused_by_row_and_column(built: Path, row: str, where: str) -> None:
    good = "c,n1,100,1,12,2026-10-01T00:00:00Z,1,1,1,1,1,1,1,USD"
    path = write_lines(built / "bad.csv", ASSETS, good, row)
    with Workspace.at(built).open_lake() as lake, pytest.raises(InputError) as caught:
        load_files(lake, "assets", [path])
    (problem,) = caught.value.problems
    assert problem.row == 3
    assert where in f"{problem.column} {problem.message}"
