"""From a team's line back to the lines of the invoice: the parts are the whole."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from chargeback.build import build_period
from chargeback.explain import explain
from fleet.config import parse_config
from fleet.errors import NotBuiltError
from tests.chargeback.ledger import PERIOD, empty_lake, load_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.lake import Connection, Lake

CLOSE = Decimal("1e-9")
CONFIG = parse_config('[pools]\nunused_commitment.policy = "proportional"')
MONTH = {
    "inventory": """
        node,gpu_count,valid_from,valid_to,resource_id
        a,3,2026-02-01T00:00:00Z,2026-02-01T03:00:00Z,i-1
        b,7,2026-02-01T00:00:00Z,2026-02-01T03:00:00Z,i-2
        """,
    "holdings": """
        start,end,gpus,node,pool,team,namespace
        2026-02-01T00:00:00Z,2026-02-01T02:10:01Z,1,a,,red,
        2026-02-01T00:00:00Z,2026-02-01T01:00:00Z,3,,p,blue,
        2026-02-01T00:20:00Z,2026-02-01T03:00:00Z,0.333,,p,green,
        2026-02-01T00:20:00Z,2026-02-01T03:00:00Z,1,b,,,lab
        """,
    # 2: plain usage; 3: three hours in one line; 4-6: a plan paid upfront, used and unused; 7: tax; 8: credit;
    # 9-10: two large fees in the same hour; 11: an issuer that bills a small currency unit.
    "charges": """
        ChargePeriodStart,ChargePeriodEnd,ResourceId,BilledCost,EffectiveCost,ChargeCategory,CommitmentDiscountId,CommitmentDiscountStatus,BillingCurrency,InvoiceId
        2026-02-01T00:00:00Z,2026-02-01T01:00:00Z,i-1,10.01,10.01,Usage,,,USD,one
        2026-02-01T00:00:00Z,2026-02-01T03:00:00Z,i-1,7.77,7.77,Usage,,,USD,one
        2026-02-01T00:00:00Z,2026-03-01T00:00:00Z,sp-1,300,0,Purchase,sp-1,,USD,two
        2026-02-01T00:00:00Z,2026-02-01T03:00:00Z,i-2,0,61.3,Usage,sp-1,Used,USD,two
        2026-02-01T00:00:00Z,2026-02-01T03:00:00Z,sp-1,0,38.7,Usage,sp-1,Unused,USD,two
        2026-02-01T00:00:00Z,2026-03-01T00:00:00Z,,3.33,3.33,Tax,,,USD,one
        2026-02-01T00:00:00Z,2026-03-01T00:00:00Z,,-1.11,-1.11,Credit,,,USD,one
        2026-02-01T00:00:00Z,2026-02-01T01:00:00Z,,30000000000,30000000000,Purchase,,,KRW,
        2026-02-01T00:00:00Z,2026-02-01T01:00:00Z,,20000000000,20000000000,Purchase,,,KRW,
        2026-02-01T00:00:00Z,2026-02-01T03:00:00Z,i-2,90000000000,90000000000,Usage,,,KRW,
        """,
}


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    folder = tmp_path_factory.mktemp("explain")
    lakes = empty_lake(folder)
    lake: Lake = next(lakes)()
    load_rows(lake, folder, **MONTH)
    build_period(lake, CONFIG, PERIOD)
    yield lake.connection
    lake.close()


@pytest.mark.parametrize("team", ["red", "blue", "green", "platform"])
def test_the_traced_parts_are_the_line(team: str, con: Connection) -> None:
    found = explain(con, PERIOD, team)
    for currency in {line["currency"] for line in found.lines}:
        owed = sum(line["exact_amount"] for line in found.lines if line["currency"] == currency)
        traced = sum(charge["part"] for charge in found.charges if charge["currency"] == currency)
        assert abs(owed - traced) < CLOSE
        by_invoice = sum(group["part"] for group in found.by_invoice if group["currency"] == currency)
        assert by_invoice == traced


@pytest.mark.parametrize(
    ("team", "category"),
    [
        ("red", "held"), ("red", "idle"), ("blue", "held"), ("blue", "idle"), ("green", "tax"), ("green", "credit"),
        ("red", "unused_commitment"), ("blue", "overhead"), ("platform", "unattributed"),
    ],
)  # fmt: skip
def test_one_category_is_traced_alone(team: str, category: str, con: Connection) -> None:
    found = explain(con, PERIOD, team, category)
    assert {line["category"] for line in found.lines} == {category}
    owed = sum(line["exact_amount"] for line in found.lines)
    assert owed != 0
    assert abs(owed - sum(charge["part"] for charge in found.charges)) < CLOSE


def test_money_comes_from_the_lines_that_it_came_from(con: Connection) -> None:
    # Red sat on node a alone: plain usage, no plan. Idle reaches back through the pool to both nodes, in dollars only:
    # red held nothing that is billed in won.
    held = explain(con, PERIOD, "red", "held").charges
    assert {(charge["source_file"], charge["source_row"]) for charge in held} == {
        ("charges.csv", 2),
        ("charges.csv", 3),
    }
    idle = explain(con, PERIOD, "red", "idle").charges
    assert {charge["source_row"] for charge in idle} == {2, 3, 5}
    # What a plan covered is traced to the covered usage, not to the fee of 300.00 that paid for it.
    assert {charge["source_row"] for charge in explain(con, PERIOD, "red", "unused_commitment").charges} == {6}
    assert {charge["source_row"] for charge in explain(con, PERIOD, "blue", "tax").charges} == {7}


def test_all_teams_together_explain_every_charge_that_cost_something(con: Connection) -> None:
    parts: dict[int, Decimal] = {}
    for team in ("red", "blue", "green", "platform"):
        for charge in explain(con, PERIOD, team).charges:
            parts[charge["source_row"]] = parts.get(charge["source_row"], Decimal(0)) + charge["part"]
    costs = dict(con.execute("SELECT source_row, effective_cost FROM lake.charge WHERE effective_cost <> 0").fetchall())
    assert parts.keys() == costs.keys()
    for row, cost in costs.items():
        assert abs(parts[row] - cost) < CLOSE


def test_lines_say_how_they_were_shared(con: Connection) -> None:
    (idle,) = [line for line in explain(con, PERIOD, "red", "idle").lines if line["currency"] == "USD"]
    assert idle["policy"] == "proportional"
    assert 0 < idle["weight"] < idle["total_weight"]
    share = idle["pool_amount"] * int(idle["weight"]) / int(idle["total_weight"])
    assert abs(share - idle["exact_amount"]) < CLOSE


def test_invoices_are_summed_per_file_and_number(con: Connection) -> None:
    groups = explain(con, PERIOD, "blue").by_invoice
    shown = [(group["invoice_id"], group["currency"], group["charge_lines"]) for group in groups]
    assert shown == [("", "KRW", 3), ("one", "USD", 4), ("two", "USD", 2)]
    assert [(group["first_row"], group["last_row"]) for group in groups] == [(9, 11), (2, 8), (5, 6)]


def test_what_is_not_there_is_said(con: Connection) -> None:
    with pytest.raises(NotBuiltError, match=r"team 'nobody' has no line in 2026-02"):
        explain(con, PERIOD, "nobody")
    with pytest.raises(NotBuiltError, match=r"team 'red' has no serving line in 2026-02"):
        explain(con, PERIOD, "red", "serving")
    with pytest.raises(NotBuiltError, match=r"gputally build 2026-03"):
        explain(con, "2026-03", "red")
