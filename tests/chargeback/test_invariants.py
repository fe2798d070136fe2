"""Random small fleets through the whole model: what must hold whatever the inputs are."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.build import parameters
from chargeback.checks import failed_checks
from fleet.config import DEFAULT_POLICIES, Config, PoolPolicy
from fleet.period import local_day_of
from tests.chargeback.ledger import PERIOD, compute, memory_ledger, put

if TYPE_CHECKING:
    from store.lake import Connection

Row = dict[str, Any]
START = datetime(2026, 2, 1, tzinfo=UTC)
END = datetime(2026, 3, 1, tzinfo=UTC)
TEAMS = ("ash", "birch", "cedar")
ZONES = ("UTC", "Asia/Kolkata", "America/Los_Angeles")
PICO = Decimal("1e-12")
TABLES = {
    "node": "inventory", "holding": "holdings", "charge": "charges", "invoice": "invoices", "quota": "quotas",
    "commitment": "commitments",
}  # fmt: skip


@dataclass(frozen=True)
class Fleet:
    """The input rows of a month, by table, and the policy of each pool."""

    rows: dict[str, list[Row]]
    policies: dict[str, str]

    def renamed(self, names: dict[str, str]) -> Fleet:
        rows = {
            table: [row | {"team": names[row["team"]]} if row.get("team") else row for row in members]
            for table, members in self.rows.items()
        }
        return replace(self, rows=rows)

    def shuffled(self, seed: int) -> Fleet:
        generator = random.Random(seed)
        return replace(self, rows={table: generator.sample(rows, len(rows)) for table, rows in self.rows.items()})


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


moments = st.integers(0, 8 * 3600)
lengths = st.integers(1, 5 * 3600)
pools = st.sampled_from(["p", "q", "r"])
money = st.integers(-5_000, 50_000).map(lambda units: Decimal(units).scaleb(-3))
currencies = st.sampled_from(["USD", "USD", "JPY"])
policies = st.fixed_dictionaries(
    {kind: st.sampled_from(["proportional", "even", "quota", "central"]) for kind in DEFAULT_POLICIES}
)


@st.composite
def nodes(draw: st.DrawFn, number: int) -> Row:
    start = draw(moments)
    return {
        "cluster": "c", "node": f"n{number}", "gpu_count": draw(st.integers(0, 8)), "valid_from": at(start),
        "valid_to": at(start + draw(lengths)), "pool": draw(pools), "resource_id": f"i-{number}",
        "gpu_model": draw(st.sampled_from(["H100", None])),
    }  # fmt: skip


@st.composite
def charges(draw: st.DrawFn) -> Row:
    start = draw(st.integers(-3600, 8 * 3600))
    category = draw(st.sampled_from(["Usage"] * 6 + ["Tax", "Credit", "Adjustment", "Purchase"]))
    billed = effective = draw(money)
    # The export amortises sp-1; k-1 is a contract that is amortised here, and usage may name it as its reservation.
    known = {"Usage": [None, None, "sp-1"], "Purchase": [None, "sp-1", "k-1"]}.get(category, [None])
    commitment = draw(st.sampled_from(known))
    if commitment:
        billed = draw(st.sampled_from([Decimal(0), billed, Decimal(7)]))
        effective = Decimal(0) if category == "Purchase" else effective
    return {
        "invoice_issuer": draw(st.sampled_from(["Cloud", "Kumo"])), "billing_currency": draw(currencies),
        "billing_period_start": START, "billing_period_end": END, "charge_period_start": at(start),
        "charge_period_end": at(start + draw(lengths)), "charge_category": category, "billed_cost": billed,
        "effective_cost": effective, "commitment_discount_id": commitment,
        "commitment_discount_status": draw(st.sampled_from(["Used", "Unused"])) if commitment else None,
        "resource_id": draw(st.sampled_from(["i-0", "i-1", "i-2", "x/i-3", "other", None])),
        "capacity_reservation_id": draw(st.sampled_from([None, "k-1"])) if category == "Usage" else None,
    }  # fmt: skip


@st.composite
def contracts(draw: st.DrawFn) -> Row:
    start = draw(moments)
    return {
        "commitment_id": "k-1", "kind": "prepaid_contract", "term_start": at(start),
        "term_end": at(start + draw(lengths)), "quantity": draw(st.sampled_from([None, 0, 1, 3])),
        "pool": draw(st.sampled_from([None, "p"])), "unit": draw(st.sampled_from([None, "gpus"])),
    }  # fmt: skip


@st.composite
def holdings(draw: st.DrawFn, node_count: int) -> Row:
    start = draw(moments)
    place = (
        {"cluster": "c", "node": f"n{draw(st.integers(0, node_count - 1))}"}
        if draw(st.booleans())
        else {"pool": draw(pools)}
    )
    team = draw(st.sampled_from([*TEAMS, None]))
    gpus = draw(st.integers(0, 4000).map(lambda milli: Decimal(milli).scaleb(-3)))
    return place | {
        "held_from": at(start), "held_to": at(start + draw(lengths)), "gpus": gpus, "team": team,
        "namespace": None if team else "lab",
    }  # fmt: skip


@st.composite
def quotas(draw: st.DrawFn) -> Row:
    return {
        "pool": draw(pools), "team": draw(st.sampled_from(TEAMS)), "gpus": draw(st.integers(0, 8)),
        "valid_from": at(draw(moments)), "valid_to": None,
    }  # fmt: skip


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    count = draw(st.integers(1, 4))
    charged = draw(st.lists(charges(), min_size=1, max_size=8))
    rows = {
        "node": [draw(nodes(number)) for number in range(count)],
        "holding": draw(st.lists(holdings(count), max_size=8)),
        "charge": charged,
        "invoice": draw(invoices(charged)),
        "quota": draw(st.lists(quotas(), max_size=4)),
        "commitment": draw(st.lists(contracts(), max_size=1)),
    }
    return Fleet(rows, draw(policies))


@st.composite
def invoices(draw: st.DrawFn, charged: list[Row]) -> list[Row]:
    """For some issuers an invoice, off by less than a hundred minor units, or with tax that no line has."""
    billed: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for row in charged:
        billed[row["invoice_issuer"], row["billing_currency"]] += row["billed_cost"]
    taxed = {(row["invoice_issuer"], row["billing_currency"]) for row in charged if row["charge_category"] == "Tax"}
    found = []
    for (issuer, currency), total in sorted(billed.items()):
        if draw(st.booleans()):
            off = draw(st.integers(-99, 99)) * Decimal("0.01")
            tax = draw(st.sampled_from([None, Decimal("3.50")]))
            total += off + (tax if tax and (issuer, currency) not in taxed else 0)
            found.append(
                {
                    "issuer": issuer, "invoice_id": currency, "period": PERIOD, "currency": currency,
                    "total_amount": total, "tax_amount": tax,
                }
            )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def con() -> Connection:
    return memory_ledger()


def run(con: Connection, fleet: Fleet) -> str:
    for table, kind in TABLES.items():
        put(con, table, fleet.rows[table], kind=kind)
    config = Config(pools={kind: PoolPolicy(policy) for kind, policy in fleet.policies.items()})
    return compute(con, config)


def statement(con: Connection) -> list[tuple[Any, ...]]:
    query = "SELECT currency, team, category, pool, gpu_model, policy, gpu_microseconds, exact_amount, amount"
    return con.execute(f"{query} FROM statement_line ORDER BY ALL").fetchall()


def sums(con: Connection, query: str) -> dict[Any, Decimal]:
    """First column -> sum of the second, without zeros."""
    totals: dict[Any, Decimal] = defaultdict(Decimal)
    for key, amount in con.execute(query).fetchall():
        totals[key] += amount or 0
    return {key: total for key, total in totals.items() if total}


def owed(con: Connection) -> dict[str, Decimal]:
    return sums(con, "SELECT currency, amount FROM posting WHERE starts_with(to_account, 'team:')")


@settings(max_examples=25)
@given(fleets())
def test_the_ledger_balances(con: Connection, fleet: Fleet) -> None:
    run(con, fleet)
    assert failed_checks(con, parameters(PERIOD), strict=False) == []

    # All that was consumed is owed by teams, with what the invoices ask beyond: per currency, to the last unit.
    consumed = sums(con, "SELECT currency, effective_cost FROM charge_span")
    rounded = sums(con, "SELECT currency, from_pico(amount_pico) FROM posting_invoice")
    expected = {c: consumed.get(c, 0) + rounded.get(c, 0) for c in consumed.keys() | rounded.keys()}
    assert owed(con) == {currency: total for currency, total in expected.items() if total}

    # GPU time that is priced is held by a team or shared among teams: no second is lost or made.
    priced = "SELECT 'gpu', capacity_gpu_microseconds FROM node_hour_cost WHERE carries_gpu_time"
    shared = "SELECT 'gpu', gpu_microseconds FROM posting WHERE starts_with(to_account, 'team:')"
    assert sums(con, shared) == sums(con, priced)

    # Nobody pays for more time than was held, over all currencies (a microsecond of each posting is the division's).
    billed = sums(con, "SELECT team, gpu_microseconds FROM posting WHERE category = 'held'")
    held = sums(con, "SELECT team, held_gpu_microseconds FROM held_hour")
    count = con.execute("SELECT count(*) FROM posting WHERE category = 'held'").fetchall()[0][0]
    assert all(time <= held[team] + count for team, time in billed.items())


@settings(max_examples=10)
@given(fleets(), st.sampled_from(ZONES))
def test_every_view_has_the_same_total(con: Connection, fleet: Fleet, zone: str) -> None:
    run(con, fleet)
    rows = con.execute(
        "SELECT currency, hour_start, team, category, amount FROM posting WHERE starts_with(to_account, 'team:')"
    ).fetchall()
    by_day: dict[Any, Decimal] = defaultdict(Decimal)
    for currency, hour, _, _, amount in rows:
        by_day[currency, local_day_of(hour, zone)] += amount
    lines = statement(con)
    for currency in {row[0] for row in rows}:
        exact = sum((row[7] for row in lines if row[0] == currency), Decimal(0))
        assert sum(amount for (unit, _), amount in by_day.items() if unit == currency) == exact
        booked = sum((row[8] for row in lines if row[0] == currency), Decimal(0))
        unit = Decimal(1) if currency == "JPY" else Decimal("0.01")
        assert abs(booked - exact) * 2 <= unit
        for team in {row[1] for row in lines if row[0] == currency}:
            own = [row for row in lines if row[:2] == (currency, team)]
            assert abs(sum(row[8] for row in own) - sum(row[7] for row in own)) < unit


@settings(max_examples=8)
@given(fleets(), st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter(con: Connection, fleet: Fleet, seed: int) -> None:
    """Nor does running twice: the same inputs have the same id and the same rows."""
    first_id = run(con, fleet)
    first = statement(con)
    assert compute(con, Config(pools={k: PoolPolicy(p) for k, p in fleet.policies.items()})) == first_id
    assert statement(con) == first
    run(con, fleet.shuffled(seed))
    assert statement(con) == first


@settings(max_examples=8)
@given(fleets(), st.permutations(TEAMS))
def test_names_of_teams_decide_no_more_than_the_last_digit(
    con: Connection, fleet: Fleet, names: tuple[str, ...]
) -> None:
    """Teams are laid end to end by name, so a name moves less than a pico-unit of each posting and a cent of a tie.

    What all owe together does not change at all.
    """
    new = dict(zip(TEAMS, names, strict=True))
    held = "SELECT (currency, team, pool), amount FROM posting WHERE category = 'held'"
    run(con, fleet)
    before, total = sums(con, held), owed(con)
    count = con.execute("SELECT count(*) FROM posting WHERE category = 'held'").fetchall()[0][0]
    run(con, fleet.renamed(new))
    after = sums(con, held)
    assert owed(con) == total
    renamed = {(currency, new[team], pool): amount for (currency, team, pool), amount in before.items()}
    for key in renamed.keys() | after.keys():
        assert abs(renamed.get(key, Decimal(0)) - after.get(key, Decimal(0))) <= count * PICO


@settings(max_examples=8)
@given(fleets(), policies)
def test_a_policy_moves_money_between_teams_and_never_the_total(
    con: Connection, fleet: Fleet, other: dict[str, str]
) -> None:
    held = "SELECT (currency, team, pool), amount FROM posting WHERE category = 'held'"
    first_id = run(con, fleet)
    total, direct = owed(con), sums(con, held)
    other_id = run(con, replace(fleet, policies=other))
    assert owed(con) == total
    assert sums(con, held) == direct
    assert (first_id == other_id) == (fleet.policies == other)
    assert failed_checks(con, parameters(PERIOD), strict=False) == []
