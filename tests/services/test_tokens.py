"""`gputally tokens`: what a token cost, in every form."""

from __future__ import annotations

import csv
import json
import shutil
from decimal import Decimal
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from services.workspace import Workspace
from tests.month import write_lines
from tests.program import gputally, new_workspace, refusal, said

if TYPE_CHECKING:
    from pathlib import Path

MONTH = "2026-05-01T00:00:00Z,2026-06-01T00:00:00Z"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose node serves `llm-a` all of May 2026, by the command line alone."""
    folder = new_workspace(tmp_path_factory.mktemp("served") / "ws")
    toml = folder / "gputally.toml"
    text = toml.read_text("utf-8")
    server = '[{ name = "llm-a", match_namespace = "serving", match_workload = "llm-a-*" }]'
    toml.write_text(text.replace("servers = []", f"servers = {server}"), "utf-8")
    files = {
        "inventory": ["cluster,node,gpu_count,valid_from,valid_to,pool,resource_id", f"c,n1,8,{MONTH},train,i-1"],
        "holdings": ["start,end,gpus,node,team,namespace,workload", f"{MONTH},8,n1,ml,serving,llm-a-0"],
        "charges": [
            "InvoiceIssuerName,BillingAccountId,BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,"
            "ChargeCategory,BilledCost,EffectiveCost,BillingCurrency,ResourceId",
            f"Cloud,a,{MONTH},{MONTH},Usage,7440,7440,USD,i-1",
        ],
        "tokens": [
            "server,tenant,model,hour_start,input_tokens,cached_input_tokens,output_tokens,requests",
            "llm-a,ml,m,2026-05-01T00:00:00Z,400,0,100,2",
            "llm-a,=cmd,m,2026-05-01T00:00:00Z,200,0,0,",
        ],
    }
    for kind, lines in files.items():
        said(gputally("-C", folder, "load", kind, write_lines(folder / f"{kind}.csv", *lines)))
    said(gputally("-C", folder, "build", "2026-05"))
    return folder


def test_tokens_are_the_same_in_every_form(served: Path) -> None:
    """10 an hour: 800 of the first hour's 1000 weights are ml's, 200 the stranger's; 743 hours are idle."""
    rows = json.loads(said(gputally("-C", served, "tokens", "2026-05", "--format", "json")))
    assert {(row["kind"], row["tenant"], row["team"], Decimal(row["amount"])) for row in rows} == {
        ("tenant", "ml", "ml", Decimal(8)),
        ("tenant", "=cmd", None, Decimal(2)),
        ("idle", None, "ml", Decimal(7430)),
    }
    ml = next(row for row in rows if row["tenant"] == "ml")
    assert Decimal(ml["input_price_per_million"]) == 10_000
    assert Decimal(ml["output_price_per_million"]) == 40_000
    assert (ml["price_per_request"], ml["cached_input_price_per_million"]) == ("4.000000000000", None)
    as_csv = list(csv.DictReader(StringIO(said(gputally("-C", served, "tokens", "2026-05", "--format", "csv")))))
    assert [row["amount"] for row in as_csv] == [row["amount"] for row in rows]
    assert {row["tenant"] for row in as_csv} == {"ml", "'=cmd", ""}
    table = said(gputally("-C", served, "tokens", "2026-05")).splitlines()
    assert len(table) == 1 + len(rows) + 1
    assert "(idle)" in table[-2]
    assert "7,440.00" in table[-1]


def test_beside_an_api(served: Path, tmp_path: Path) -> None:
    prices = write_lines(
        tmp_path / "api.csv",
        "model,input_per_million,cached_per_million,output_per_million,currency",
        "m,1000,,2000,USD",
    )
    rows = json.loads(
        said(gputally("-C", served, "tokens", "2026-05", "--team", "ml", "--format", "json", "--api-prices", prices))
    )
    assert [(row["kind"], row["api_amount"]) for row in rows] == [("tenant", "0.600000000000"), ("idle", None)]
    table = said(gputally("-C", served, "tokens", "2026-05", "--api-prices", prices)).splitlines()
    assert "at the API" in table[0]
    bad = write_lines(tmp_path / "bad.csv", "model,input_per_million", "m,1")
    assert "bad.csv" in refusal(gputally("-C", served, "tokens", "2026-05", "--api-prices", bad))


def test_a_month_that_is_not_built_is_refused(served: Path) -> None:
    assert refusal(gputally("-C", served, "tokens", "2020-01")).startswith("2020-01 has not been built: ")
    nobody = refusal(gputally("-C", served, "tokens", "2026-05", "--team", "x"))
    assert nobody == "team 'x' has no token line in 2026-05"


def test_the_split_can_be_checked_and_explained(served: Path) -> None:
    assert said(gputally("-C", served, "check", "2026-05")) == ""
    shown = said(gputally("-C", served, "explain", "2026-05", "--team", "ml", "--category", "serving"))
    assert "charges.csv" in shown


def test_waste_is_shown_in_every_form(tmp_path: Path, served: Path) -> None:
    """Two hours of 10: one idle, one in which a quarter of the tokens reached nobody."""
    folder = tmp_path / "ws"
    shutil.copytree(served, folder)
    with Workspace.at(folder).open_lake() as lake:
        for hour, running_ms, made, finished in ((1, 0, 0, 0), (2, 3_600_000, 400, 300)):
            second = hour * 3600
            lake.connection.execute(
                "INSERT INTO lake.engine_window (day, second, cluster, node, server, window_ms, running_observed_ms, "
                "running_request_ms, generation_tokens, finished_generation_tokens) "
                "VALUES (20574, ?, 'c', 'n1', 'llm-a', 3600000, 3600000, ?, ?, ?)",
                [second, running_ms, made, finished],
            )
    assert "engine" in refusal(gputally("-C", folder, "tokens", "2026-05", "--waste"))
    said(gputally("-C", folder, "build", "2026-05"))
    rows = json.loads(said(gputally("-C", folder, "tokens", "2026-05", "--waste", "--format", "json")))
    assert [(row["class"], row["hours"], row["gpu_hours"], Decimal(row["amount"])) for row in rows] == [
        ("idle", 2, "8.000000", Decimal(10)),
        ("wasted_work", 2, "2.000000", Decimal("2.5")),
    ]
    as_csv = list(
        csv.DictReader(StringIO(said(gputally("-C", folder, "tokens", "2026-05", "--waste", "--format", "csv"))))
    )
    assert [row["amount"] for row in as_csv] == [row["amount"] for row in rows]
    table = said(gputally("-C", folder, "tokens", "2026-05", "--waste", "--team", "ml")).splitlines()
    assert "12.50" in table[-1]
    assert "team 'x'" in refusal(gputally("-C", folder, "tokens", "2026-05", "--waste", "--team", "x"))
