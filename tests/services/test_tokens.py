"""`gputally tokens`: what a token cost, in every form."""

from __future__ import annotations

import csv
import json
import shutil
from decimal import Decimal
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from chargeback.server_waste import NEXT_STEPS
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


@pytest.fixture(scope="module")
def watched(served: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same month with an agent beside the engine in its first three hours: busy, idle, and with lost work."""
    folder = tmp_path_factory.mktemp("watched") / "ws"
    shutil.copytree(served, folder)
    assert "engine" in refusal(gputally("-C", folder, "waste", "2026-05"))
    busy, idle = {"running_request_ms": 3_600_000}, {"running_request_ms": 0}
    hours: tuple[dict[str, int], ...] = (
        busy
        | {"prompt_tokens": 600, "generation_tokens": 110, "finished_generation_tokens": 110, "preemption_events": 3},
        idle | {"prompt_tokens": 0, "generation_tokens": 0, "finished_generation_tokens": 0},
        busy | {"generation_tokens": 400, "finished_generation_tokens": 300, "aborted_requests": 7},
    )
    with Workspace.at(folder).open_lake() as lake:
        for hour, values in enumerate(hours):
            row = {
                "day": 20574, "second": hour * 3600, "cluster": "c", "node": "n1", "server": "llm-a",
                "window_ms": 3_600_000, "running_observed_ms": 3_600_000,
            } | values  # fmt: skip
            marks = ", ".join("?" for _ in row)
            lake.connection.execute(
                f"INSERT INTO lake.engine_window ({', '.join(row)}) VALUES ({marks})", list(row.values())
            )
    said(gputally("-C", folder, "build", "2026-05"))
    return folder


WASTE_TABLE = """\
server  team  class        hours  GPU hours     USD  events
llm-a   ml    idle             3   8.000000   10.00       -
llm-a   ml    wasted_work      3   2.000000    2.50       7
llm-a   ml    preempted        0          -       -       3
total                                         12.50
"""


def test_waste_is_shown_in_every_form(watched: Path) -> None:
    """Hours of 10: the second is idle, of the third a quarter is lost; what preemptions cost is not known."""
    rows = json.loads(said(gputally("-C", watched, "waste", "2026-05", "--format", "json")))
    assert [(row["class"], row["hours"], row["gpu_hours"], row["amount"], row["events"]) for row in rows] == [
        ("idle", 3, "8.000000", "10.000000000000", None),
        ("wasted_work", 3, "2.000000", "2.500000000000", 7),
        ("preempted", 0, None, None, 3),
    ]
    assert {row["team"] for row in rows} == {"ml"}
    assert [row["next_step"] for row in rows] == [NEXT_STEPS[row["class"]] for row in rows]
    assert [bool(row["reason"]) for row in rows] == [False, False, True]
    as_csv = list(csv.DictReader(StringIO(said(gputally("-C", watched, "waste", "2026-05", "--format", "csv")))))
    assert as_csv == [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
    shown = said(gputally("-C", watched, "waste", "2026-05", "--team", "ml", "--server", "llm-a"))
    assert [line.split() for line in shown.splitlines()[:5]] == [line.split() for line in WASTE_TABLE.splitlines()]
    assert shown.splitlines()[5:] == [
        f"llm-a idle: {NEXT_STEPS['idle']}",
        f"llm-a wasted_work: {NEXT_STEPS['wasted_work']}",
        f"llm-a preempted: not known: {rows[2]['reason']}",
        f"llm-a preempted: {NEXT_STEPS['preempted']}",
    ]
    assert said(gputally("-C", watched, "tokens", "2026-05", "--waste", "--team", "ml")) == shown


def test_waste_of_nobody_is_refused(watched: Path) -> None:
    assert "team 'x'" in refusal(gputally("-C", watched, "waste", "2026-05", "--team", "x"))
    assert "server 'y'" in refusal(gputally("-C", watched, "waste", "2026-05", "--server", "y"))


COVERAGE_OF_DAYS = """\
server,start,hours,input_hours,gateway_input_tokens,engine_input_tokens,input_ratio,output_hours,\
gateway_output_tokens,engine_output_tokens,output_ratio,unreported_requests,flag,reason
llm-a,2026-05-01,24,2,600,600,1.000000,3,100,510,0.196078,,tokens_outside_gateway,
llm-a,2026-05-02,24,0,,,,0,,,,,,the engine's own count is not known
"""


def test_coverage_is_gateway_tokens_over_engine_tokens(watched: Path) -> None:
    printed = said(gputally("-C", watched, "tokens", "2026-05", "--coverage", "--format", "csv"))
    assert printed.startswith(COVERAGE_OF_DAYS)
    assert printed.count("\n") == 1 + 31
    rows = json.loads(
        said(gputally("-C", watched, "tokens", "2026-05", "--coverage", "--by", "hour", "--format", "json"))
    )
    assert [(row["start"], row["input_ratio"], row["output_ratio"], row["flag"]) for row in rows[:3]] == [
        ("2026-05-01 00:00", "1.000000", "0.909090", "tokens_outside_gateway"),
        ("2026-05-01 01:00", None, None, None),
        ("2026-05-01 02:00", None, "0.000000", "tokens_outside_gateway"),
    ]
    assert [row["reason"] for row in rows[:3]] == [
        None, "the engine counted no token", "the engine's own count is not known"
    ]  # fmt: skip
    assert len(rows) == 31 * 24
    month = said(gputally("-C", watched, "tokens", "2026-05", "--coverage", "--by", "period", "--server", "llm-a"))
    heading, line = (" ".join(part.split()) for part in month.splitlines())
    assert (
        heading == "server start hours gateway input engine input covered gateway output engine output covered remark"
    )
    assert line == "llm-a 2026-05 744 600 600 1.000000 100 510 0.196078 tokens_outside_gateway"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--coverage", "--waste"), "two questions"),
        (("--coverage", "--team", "ml"), "leave out --team"),
        (("--by", "hour"), "--by is for --coverage"),
        (("--waste", "--api-prices", "pyproject.toml"), "leave out --api-prices"),
    ],
)
def test_questions_that_do_not_go_together_are_refused(watched: Path, options: tuple[str, ...], complaint: str) -> None:
    done = gputally("-C", watched, "tokens", "2026-05", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


def test_a_server_that_is_not_there_is_refused(watched: Path) -> None:
    assert refusal(gputally("-C", watched, "tokens", "2026-05", "--coverage", "--server", "x")) == (
        "no shared model server 'x' cost anything in 2026-05"
    )
    assert refusal(gputally("-C", watched, "tokens", "2026-05", "--server", "x")) == (
        "server 'x' has no token line in 2026-05"
    )
