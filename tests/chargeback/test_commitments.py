"""Commitments that are paid ahead, and the prepaid accounts that they leave.

Numbers are those of the FOCUS specification's examples and of public reports where they are right; where a source has
an error the right value stands here, with a comment.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.build import prepare
from fleet.config import parse_config
from tests.chargeback.bill import HOUR, account, at, booked, charge, held, ledger, month_of, node, one, paid_ahead, run
from tests.chargeback.ledger import memory_ledger, put

if TYPE_CHECKING:
    from store.lake import Connection


@pytest.fixture(scope="module")
def con() -> Connection:
    return memory_ledger()


UP_TO_NODES = (
    "commitment_term", "prepaid_movement", "commitment_account", "commitment_amortised", "commitment_charge",
    "charge_span", "charge_hour", "node_hour", "commitment_use", "commitment_hour", "posting_charge",
)  # fmt: skip
COST_REACHED = """
    SELECT coalesce(from_pico(sum(amount_pico)), 0) FROM posting_charge
    WHERE starts_with(to_account, 'node:') OR starts_with(to_account, 'pool:')
"""


def test_o03_savings_plan_all_upfront_75_percent(con: Connection) -> None:
    """52.40 x 8,760 = 459,024.00, as the example's CSV has it (its text says 459,000.00)."""
    start, end = at("2026-02-01"), at("2026-02-02")
    plan = {"commitment_discount_id": "sp-1"}
    rows = [
        paid_ahead(start, at("2027-02-01"), "459024.00", "sp-1"),
        charge(start, start + 18 * HOUR, 0, "943.20", resource_id="i-1", commitment_discount_status="Used", **plan),
        charge(start, end, 0, "314.40", commitment_discount_status="Unused", **plan),
        charge(start, end, "10.15", resource_id="i-2"),
    ]
    invoice = {
        "issuer": "Cloud",
        "invoice_id": "1",
        "period": "2026-02",
        "currency": "USD",
        "total_amount": "459034.15",
    }
    ledger(
        con, "2026-02", charge=rows, invoice=[invoice],
        node=[node(1, start, end), node(2, start, end)], holding=[held(1, start, end), held(2, start, end, "blue")],
    )  # fmt: skip
    bridge = con.execute("SELECT invoice_total, billed_total, statement_total, prepaid_change, rounding FROM bridge")
    assert bridge.fetchall() == [tuple(map(Decimal, ("459034.15", "459034.15", "1267.75", "457766.40", "0")))]
    assert account(con, "sp-1") | {"period": ""} == {
        "period": "", "issuer": "Cloud", "currency": "USD", "commitment": "sp-1", "kind": None, "term_start": None,
        "term_end": None, "opening": 0, "purchases": Decimal("459024.00"), "amortised_used": Decimal("943.20"),
        "amortised_unused": Decimal("314.40"), "amortised_unknown": 0, "closing": Decimal("457766.40"),
        "status": "open",
    }  # fmt: skip


def test_an_export_that_amortises_is_not_amortised_again(con: Connection) -> None:
    """The same plan, known as a commitment too: its effective rows in any month count, and nothing is added."""
    start = at("2026-02-01")
    plan = {"commitment_discount_id": "arn:aws:savingsplans::1:savingsplan/SP-1"}
    rows = [
        paid_ahead(at("2026-01-01"), at("2027-01-01"), 8760, plan["commitment_discount_id"]),
        charge(at("2026-01-01"), at("2026-02-01"), 0, 744, commitment_discount_status="Used", **plan),
        charge(start, start + HOUR, 0, 1, commitment_discount_status="Used", **plan),
    ]
    known = {
        "commitment_id": "sp-1", "kind": "savings_plan", "term_start": at("2026-01-01"), "term_end": at("2027-01-01"),
        "upfront_amount": 8760, "recurring_hourly_amount": 0,
    }  # fmt: skip
    ledger(con, "2026-02", charge=rows, commitment=[known])
    assert one(con, "SELECT count(*) FROM commitment_charge") == 0
    found = account(con, plan["commitment_discount_id"])
    assert (found["opening"], found["amortised_used"], found["closing"]) == (8016, 1, 8015)


@pytest.mark.parametrize(
    ("period", "year", "month", "paid", "through"),
    # 440,000 over 8,760 hours: 24 hours are 1,205.479452 (the example prints 50.23 x 24 = 1,205.52).
    [("2026-01", 2026, 1, 1, 744), ("2026-02", 2026, 2, 2, 1416), ("2026-12", 2026, 12, 12, 8760)],
)
def test_o06_reserved_instance_partial_upfront(
    con: Connection, period: str, year: int, month: int, paid: int, through: int
) -> None:
    start, end = at("2026-01-01"), at("2027-01-01")
    months = [at(f"2026-{number:02}-01") for number in range(1, paid + 1)]
    fees = [paid_ahead(first, month_of(first)[1], "18333.33", "ri-1", charge_frequency="Recurring") for first in months]
    contract = {
        "commitment_id": "ri-1", "kind": "reserved_instance", "term_start": start, "term_end": end, "pool": "p",
        "upfront_amount": 220000, "recurring_hourly_amount": "25.114155251142",
    }  # fmt: skip
    ledger(con, period, charge=[paid_ahead(start, end, 220000, "ri-1"), *fees], commitment=[contract])
    found = account(con, "ri-1")
    total_paid = 220000 + paid * Decimal("18333.33")
    if through < 8760:
        amortised = (Decimal(440000) * through / 8760).quantize(Decimal("1e-12"), "ROUND_DOWN")
        assert found["closing"] == total_paid - amortised
    else:
        # The twelve fees come to 4 cents less than the contract; its last month takes that up.
        assert total_paid == Decimal("439999.96")
        assert (found["closing"], found["status"]) == (0, "used_up")


def test_o06_a_last_fee_of_4_cents_more_makes_the_contract_whole(con: Connection) -> None:
    start, end = at("2026-01-01"), at("2027-01-01")
    fees = [
        paid_ahead(
            first, month_of(first)[1], "18333.37" if number == 12 else "18333.33", "ri-1", charge_frequency="Recurring"
        )
        for number in range(1, 13)
        for first in [at(f"2026-{number:02}-01")]
    ]
    contract = {
        "commitment_id": "ri-1", "kind": "reserved_instance", "term_start": start, "term_end": end, "pool": "p",
        "upfront_amount": 220000, "recurring_hourly_amount": "25.114155251142",
    }  # fmt: skip
    ledger(con, "2026-12", charge=[paid_ahead(start, end, 220000, "ri-1"), *fees], commitment=[contract])
    before = (Decimal(440000) * 8016 / 8760).quantize(Decimal("1e-12"), "ROUND_DOWN")
    assert account(con, "ri-1")["amortised_unused"] == 440000 - before
    assert account(con, "ri-1")["closing"] == 0


def test_o15_reserved_instance_without_flexibility(con: Connection) -> None:
    """365.00 a year and 0.05 an hour, 600 of 672 hours used: 28.00 of the upfront fee, 55.00 used, 6.60 not."""
    start, end = at("2026-02-01"), at("2026-03-01")
    rows = [
        paid_ahead(at("2026-02-01"), at("2027-02-01"), 365, "ri-1"),
        paid_ahead(start, end, "33.60", "ri-1", charge_frequency="Recurring"),
        charge(start, start + 600 * HOUR, 0, resource_id="i-1", commitment_discount_id="ri-1"),
    ]
    contract = {
        "commitment_id": "ri-1", "kind": "reserved_instance", "term_start": start, "term_end": at("2027-02-01"),
        "upfront_amount": 365, "recurring_hourly_amount": "0.05", "quantity": 1,
    }  # fmt: skip
    ledger(
        con, "2026-02", charge=rows, commitment=[contract], node=[node(1, start, end)], holding=[held(1, start, end)]
    )
    assert booked(con) == {("red", "held"): Decimal("55.00"), ("platform", "unused_commitment"): Decimal("6.60")}
    assert account(con, "ri-1")["closing"] == 365 + Decimal("33.60") - Decimal("61.60")
    # Of the upfront fee alone, where the recurring one is consumed as it is billed.
    rows[1] = charge(start, end, "33.60", charge_category="Purchase", commitment_discount_id="ri-1")
    ledger(
        con, "2026-02", charge=rows, commitment=[contract], node=[node(1, start, end)], holding=[held(1, start, end)]
    )
    assert account(con, "ri-1")["opening"] + 365 - account(con, "ri-1")["closing"] == 28


def test_e42_hours_come_from_total_and_term(con: Connection) -> None:
    """O18: 540.00 over 8,760 hours. 0.061644 an hour would come to 540.00144; the account ends at nothing."""
    start, end = at("2026-01-01"), at("2027-01-01")
    rows = [paid_ahead(start, end, "540.00", "ri-1")]
    contract = {
        "commitment_id": "ri-1", "kind": "reserved_instance", "term_start": start, "term_end": end, "pool": "p",
    }  # fmt: skip
    assert Decimal("0.061644") * 8760 == Decimal("540.001440")
    assert Decimal("0.061644") * 8 == Decimal("0.493152")
    ledger(con, "2026-12", charge=rows, commitment=[contract])
    assert account(con, "ri-1")["closing"] == 0
    before = (Decimal(540) * 8016 / 8760).quantize(Decimal("1e-12"), "ROUND_DOWN")
    assert account(con, "ri-1")["opening"] == 540 - before


@given(
    total=st.integers(1, 10**9).map(lambda cents: Decimal(cents).scaleb(-2)),
    starts=st.integers(0, 50 * 24 * 60),
    minutes=st.integers(1, 40 * 24 * 60),
    quantity=st.integers(1, 5),
    used_hours=st.integers(0, 200),
    late_months=st.integers(0, 2),
)
@settings(max_examples=4, deadline=None)
def test_over_its_term_a_commitment_is_consumed_for_what_was_paid(
    con: Connection, total: Decimal, starts: int, minutes: int, quantity: int, used_hours: int, late_months: int
) -> None:
    """I4, whatever the term, the use and the month of the bill: a month closes as the next opens, and the end is 0."""
    start = at("2026-01-01") + timedelta(minutes=starts)
    end = start + timedelta(minutes=minutes)
    billed = month_of(start)[0]
    for _ in range(late_months):
        billed = month_of(billed)[1]
    rows = [paid_ahead(start, end, total, "k-1", period=billed)]
    use_end = min(start + used_hours * HOUR, month_of(start)[1])
    if used_hours:
        rows.append(charge(start, use_end, 0, resource_id="i-1", commitment_discount_id="k-1"))
    contract = {
        "commitment_id": "k-1", "kind": "prepaid_contract", "term_start": start, "term_end": end, "quantity": quantity,
        "pool": "p",
    }  # fmt: skip
    put(con, "charge", rows, kind="charges")
    put(con, "commitment", [contract], kind="commitments")
    put(con, "node", [node(1, start, max(use_end, start + HOUR))], kind="inventory")
    closing, consumed = Decimal(0), Decimal(0)
    for period in ("2026-01", "2026-02", "2026-03", "2026-04", "2026-05", "2026-06"):
        prepare(con, parse_config(""), period)
        run(con, period, *UP_TO_NODES, "prepaid")
        moved = con.execute("SELECT opening, closing FROM prepaid").fetchall() or [(closing, closing)]
        assert moved[0][0] == closing
        closing = moved[0][1]
        consumed += one(con, COST_REACHED)
    assert (closing, consumed) == (0, total)
