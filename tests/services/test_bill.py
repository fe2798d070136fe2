"""`gputally prepaid`, `gputally reconcile` and `gputally statement --currency`: in every form, as golden files."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from chargeback.build import build_period
from chargeback.load import load_files
from services.workspace import Workspace
from tests.month import CHARGES, INVENTORY, INVOICES, write_lines
from tests.program import gputally, new_workspace, printed, refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAY = "2026-05-01T00:00:00Z,2026-06-01T00:00:00Z"
DAY = "2026-05-01T00:00:00Z,2026-05-02T00:00:00Z"
FORMS = ("table", "csv", "json")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """May 2026: a Capacity Block, a contract without an end, an invoice a little off, euro, and unmatched resources."""
    folder = new_workspace(tmp_path_factory.mktemp("bill") / "ws")
    commitments = "commitment_id,kind,term_start,term_end,upfront,recurring_hourly,quantity,region,instance_type,pool"
    block = "capacity-block:us-east-2/p5.48xlarge/2026-05-01"
    files = {
        "inventory": [
            INVENTORY, f"c,n1,8,{DAY},train,i-1", f"c,n2,8,{DAY},train,i-2", f"c,n3,8,{DAY},train,i-3",
            f"c,n4,8,{DAY},eu,i-4",
            f"c,n5,8,{DAY},lab,i-5",
        ],
        "holdings": ["start,end,gpus,node,team", f"{DAY},8,n1,ann", f"{DAY},4,n2,=bob", f"{DAY},8,n4,ann"],
        "charges": [
            f"{CHARGES},CommitmentDiscountId,CapacityReservationId",
            f"Cloud,a,{MAY},{DAY},Purchase,960,0,USD,,inv-1,{block},",
            f"Cloud,a,{MAY},{DAY},Usage,0,0,USD,i-1,inv-1,,cr-1",
            f"Cloud,a,{MAY},{DAY},Usage,240.10,240.10,USD,i-2,inv-1,,",
            f"Cloud,a,{MAY},{DAY},Usage,7.50,7.50,USD,i-99,inv-2,,",
            f"Cloud,a,{MAY},{DAY},Purchase,500,0,USD,,inv-2,edge,",
            f"Nuage,a,{MAY},{DAY},Usage,100,100,EUR,i-4,n-1,,",
        ],
        "invoices": [
            f"{INVOICES},tax,status", "Cloud,inv-1,2026-05,USD,1200.50,,Issued",
            "Cloud,inv-2,2026-05,USD,507.50,,Issued", "Cloud,inv-0,2026-05,USD,9,,Voided",
            "Nuage,n-1,2026-05,EUR,119,19,Issued",
        ],
        "commitments": [commitments, f"cr-1,capacity_block,{DAY},,,2,us-east-2,p5.48xlarge,"],
        "rates": ["period,currency,reporting_currency,rate,source", "2026-05,EUR,USD,1.1,ECB monthly mean"],
    }  # fmt: skip
    workspace = Workspace.at(folder)
    with workspace.open_lake() as lake:
        for kind, lines in files.items():
            load_files(lake, kind, [write_lines(folder / f"{kind}.csv", *lines)])
        build_period(lake, workspace.config, "2026-05")
    return folder


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", ["prepaid", "reconcile", "reconcile --unmatched", "statement --currency USD"])
def test_golden(built: Path, command: str, form: str, golden: Callable[[str, str | bytes], None]) -> None:
    name, *options = command.split()
    text = printed("-C", built, name, "2026-05", *options, "--format", form)
    ending = "txt" if form == "table" else form
    golden(f"bill/{'-'.join([name, *(option.strip('-').lower() for option in options)])}.{ending}", text)


def test_the_forms_say_the_same(built: Path) -> None:
    def rows(form: str) -> str:
        return printed("-C", built, "statement", "2026-05", "--currency", "USD", "--format", form)

    of_json = json.loads(rows("json"))
    of_csv = list(csv.DictReader(StringIO(rows("csv"))))
    assert [row["amount"] for row in of_json] == [row["amount"] for row in of_csv]
    assert {row["team"] for row in of_csv} == {"'=bob", "ann", "platform"}
    euros = [row for row in of_json if row["booked_currency"] == "EUR"]
    assert {(row["amount"], row["booked_amount"]) for row in euros} == {("110.00", "100.00"), ("20.90", "19.00")}


def test_a_currency_without_a_rate_is_refused(built: Path) -> None:
    line = refusal(gputally("-C", built, "statement", "2026-05", "--currency", "CHF"))
    assert line.startswith("2026-05 has no rate from EUR, USD to CHF: load one")


@pytest.mark.parametrize("command", ["prepaid", "reconcile"])
def test_a_month_that_is_not_built_is_a_clear_outcome(built: Path, command: str) -> None:
    assert (
        refusal(gputally("-C", built, command, "2026-06")) == "2026-06 has not been built: run `gputally build 2026-06`"
    )


def test_explain_leads_to_the_commitment(built: Path) -> None:
    text = printed("-C", built, "explain", "2026-05", "--team", "ann", "--category", "held")
    assert "480.000000 of 960 USD  commitments.csv row 2, cr-1, 2026-05-01 00:00 UTC" in text
