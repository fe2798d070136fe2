"""Invoices beside their charges: tolerance, tax that only the invoice states, what is not issued yet."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from chargeback.build import parameters
from chargeback.checks import failed_checks
from tests.chargeback.bill import at, booked, charge, exact, held, ledger, node, one, run
from tests.chargeback.ledger import PERIOD, compute, memory_ledger, put

if TYPE_CHECKING:
    from store.lake import Connection


@pytest.fixture(scope="module")
def con() -> Connection:
    return memory_ledger()


def test_o11_tax_of_the_invoice_is_allocated_on_its_total(con: Connection) -> None:
    """8.25 % of three lines of 10.00 is 2.48, not three times 0.83: 0.83, 0.83 and 0.82. E27: no export has it."""
    start, end = at("2026-02-01"), at("2026-02-01T01:00")
    tables = {
        "charge": [charge(start, end, 10, resource_id=f"i-{number}") for number in range(3)],
        "invoice": [
            {"issuer": "Cloud", "invoice_id": "1", "period": "2026-02", "currency": "USD", "total_amount": "32.48",
             "tax_amount": "2.48"},
        ],
        "node": [node(number, start, end) for number in range(3)],
        "holding": [held(number, start, end, team) for number, team in enumerate("abc")],
    }  # fmt: skip
    ledger(con, "2026-02", **tables)
    assert {team: amount for (team, category), amount in booked(con).items() if category == "tax"} == {
        "a": Decimal("0.83"), "b": Decimal("0.83"), "c": Decimal("0.82"),
    }  # fmt: skip
    bridge = "SELECT statement_total, absent_from_export, invoice_tax FROM bridge"
    assert con.execute(bridge).fetchall() == [(Decimal("32.48"), 0, Decimal("2.48"))]
    ledger(con, "2026-02", '[ledger]\ninvoice_tax = "leave"', **tables)
    assert con.execute(bridge).fetchall() == [(Decimal("30.00"), Decimal("2.48"), 0)]


@pytest.mark.parametrize("currency", ["USD", "JPY"])
@pytest.mark.parametrize(("lines", "units"), [(1, 100), (40_000, 100), (1_000_000, 500)])
def test_i08_tolerance_of_an_invoice(con: Connection, currency: str, lines: int, units: int) -> None:
    """USD: 1.00 up to 40,000 lines and 5.00 at a million; JPY: 100 and 500. One unit more does not reconcile."""
    unit = Decimal("0.01") if currency == "USD" else Decimal(1)
    con.execute(
        "CREATE OR REPLACE TEMP TABLE minor_unit AS SELECT ? AS currency, CAST(? AS DECIMAL(18, 6)) AS minor_unit",
        [currency, unit],
    )
    con.execute(
        "CREATE OR REPLACE TEMP TABLE charge_span AS SELECT 's' AS snapshot_id, range AS source_row, "
        "'Cloud' AS issuer, ? AS currency, CAST(NULL AS VARCHAR) AS invoice_id, 'usage' AS kind, "
        "CAST(1 AS DECIMAL(38, 12)) AS billed_cost FROM range(?)",
        [currency, lines],
    )
    for beyond, status in ((0, "rounded"), (1, "differs")):
        total = lines + unit * (units + beyond)
        stated = {"issuer": "Cloud", "invoice_id": "1", "period": PERIOD, "currency": currency, "total_amount": total}
        put(con, "invoice", [stated], kind="invoices")
        con.execute("CREATE OR REPLACE TEMP VIEW invoice AS FROM lake.invoice")
        run(con, "2026-02", "invoice_total")
        assert con.execute("SELECT status, tolerance FROM invoice_total").fetchall() == [(status, unit * units)]


def test_e17_an_open_invoice_is_no_invoice_yet(con: Connection) -> None:
    start, end = at("2026-02-01"), at("2026-02-01T01:00")
    invoice = {"issuer": "Cloud", "invoice_id": "1", "period": "2026-02", "currency": "USD", "total_amount": "7.00"}
    tables = {"charge": [charge(start, end, 10)], "invoice": [invoice | {"status": "Open"}]}
    ledger(con, "2026-02", **tables)
    assert con.execute("SELECT kind, subject, amount FROM gap WHERE kind LIKE '%invoice'").fetchall() == [
        ("open_invoice", "Cloud 1", Decimal("-3.00"))
    ]
    assert one(con, "SELECT invoice_total FROM bridge") is None
    put(con, "invoice", [invoice | {"status": "Issued"}], kind="invoices")
    compute(con, period="2026-02")
    assert [name for name, _, text in failed_checks(con, parameters("2026-02"), strict=False) if "Cloud" in text] == [
        "bridge_closes", "invoice_reconciles",
    ]  # fmt: skip


def test_e34_sub_cent_corrections_are_carried_and_not_dropped(con: Connection) -> None:
    """Two adjustments of 0.001 and a correction of -0.001, as the specification's rounding example has them."""
    start, end = at("2026-02-01"), at("2026-03-01")
    rows = [
        charge(start, end, "0.001", charge_category="Adjustment"),
        charge(start, end, "0.001", charge_category="Adjustment"),
        charge(start, end, "10.004", charge_category="Usage"),
        charge(start, end, "-0.001", charge_class="Correction"),
    ]
    ledger(con, "2026-02", charge=rows)
    assert exact(con, "adjustment") == Decimal("0.001")
    assert one(con, "SELECT sum(amount) FROM statement_line") == Decimal("10.01")
    assert one(con, "SELECT rounding FROM bridge") == Decimal("-0.005")


def test_e37_the_invoice_wins_over_the_detail(con: Connection) -> None:
    """Detail with 6 decimals sums to 10.004999, the bill says 10.01: the rest is a line of its own."""
    start, end = at("2026-02-01"), at("2026-02-01T01:00")
    rows = [charge(start, end, "3.334999", resource_id="i-1"), charge(start, end, "6.670000", resource_id="i-1")]
    invoice = {"issuer": "Cloud", "invoice_id": "1", "period": "2026-02", "currency": "USD", "total_amount": "10.01"}
    ledger(con, "2026-02", charge=rows, invoice=[invoice], node=[node(1, start, end)], holding=[held(1, start, end)])
    assert one(con, "SELECT amount FROM posting WHERE step = 'rounding'") == Decimal("0.005001")
    assert one(con, "SELECT sum(amount) FROM statement_line") == Decimal("10.01")


@pytest.mark.parametrize(("residual", "is_rounding"), [("1.50", True), ("-1.50", True), ("1.51", False)])
def test_a_long_export_may_differ_by_more(con: Connection, residual: str, is_rounding: bool) -> None:
    """With 90,000 lines by 0.5 * sqrt(90,000) = 150 cents, not only by 100."""
    put(con, "charge", [], kind="charges")
    con.execute(
        """
        INSERT INTO lake.charge BY NAME
        SELECT
            'charges' AS snapshot_id, range AS source_row, 'Cloud' AS invoice_issuer, 'USD' AS billing_currency,
            'Usage' AS charge_category, 0.01 AS billed_cost, 0.01 AS effective_cost,
            TIMESTAMPTZ '2026-02-01 00:00:00Z' AS billing_period_start,
            TIMESTAMPTZ '2026-03-01 00:00:00Z' AS billing_period_end,
            TIMESTAMPTZ '2026-02-01 00:00:00Z' AS charge_period_start,
            TIMESTAMPTZ '2026-02-01 01:00:00Z' AS charge_period_end
        FROM range(90000)
        """
    )
    total = Decimal("900.00") + Decimal(residual)
    invoice = {"issuer": "Cloud", "invoice_id": "1", "period": PERIOD, "currency": "USD", "total_amount": total}
    put(con, "invoice", [invoice], kind="invoices")
    compute(con)
    posted = con.execute("SELECT from_pico(amount_pico) FROM posting_invoice").fetchall()
    assert posted == ([(Decimal(residual),)] if is_rounding else [])
    failing = [name for name, _, _ in failed_checks(con, parameters(PERIOD), strict=False)]
    assert failing == ([] if is_rounding else ["bridge_closes", "invoice_reconciles"])
