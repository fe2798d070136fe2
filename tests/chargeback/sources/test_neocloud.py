"""Invoices of GPU clouds: each line is billed once, balances are paid ahead and used up, nothing is guessed."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.sources.intake import ChargeOptions, stage_export
from chargeback.sources.judging import broken_identities
from chargeback.sources.neocloud import exports
from fleet.errors import InputError
from tests.chargeback.ledger import compute, put
from tests.chargeback.sources.azure_rows import charges, found

if TYPE_CHECKING:
    from pathlib import Path

    from chargeback.sources.judging import Broken
    from store.lake import Connection

HEADER = (
    "provider,invoice_id,period,charge_start,charge_end,sku,description,qty,unit,unit_price,amount,currency,tax,"
    "resource_ref,commitment_ref"
)
DAY = "2026-02-02T00:00:00Z,2026-02-03T00:00:00Z"


def write(path: Path, *lines: str, header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *lines, ""]), "utf-8")
    return path


def staged(con: Connection, path: Path) -> tuple[Broken, ...]:
    (export,) = exports(con, [path])
    stage_export(con, export, ChargeOptions())
    return broken_identities(con)


def land(con: Connection) -> None:
    """Make what was staged the charges of the lake, without invoices."""
    put(con, "invoice", [], kind="invoices")
    rows = con.execute("FROM staged_charge ORDER BY source_row").fetchall()
    names = [column[0] for column in con.description or ()]
    put(con, "charge", [dict(zip(names, row, strict=True)) for row in rows], kind="charges")


def posted(con: Connection, columns: str) -> list[tuple[Any, ...]]:
    query = f"SELECT {columns}, sum(amount) FROM posting WHERE step = 'charge' GROUP BY ALL ORDER BY ALL"
    return con.execute(query).fetchall()


def test_lines_taxes_and_credits_of_an_invoice(con: Connection, tmp_path: Path) -> None:
    path = write(
        tmp_path / "coreweave.csv",
        f"CoreWeave,CW-1,2026-02,{DAY},h100,HGX H100,24,Hours,49.24,1181.76,USD,97.50,node-1,",
        "CoreWeave,CW-1,2026-02,,,sla,SLA credit,,,,-120.50,USD,,,",
    )
    assert staged(con, path) == ()
    money = "billed_cost, effective_cost, contracted_cost"
    assert charges(con, f"source_row, part_row, charge_category, {money}, consumed_quantity, resource_id") == [
        (2, None, "Usage", Decimal("1181.76"), Decimal("1181.76"), Decimal("1181.76"), 24, "node-1"),
        (3, None, "Credit", Decimal("-120.50"), Decimal("-120.50"), None, None, None),
        (5, 2, "Tax", Decimal("97.50"), Decimal("97.50"), None, None, None),
    ]
    times = "charge_period_start::DATE, charge_period_end::DATE, billing_period_end::DATE"
    assert [tuple(map(str, row)) for row in charges(con, f"{times}, invoice_issuer, invoice_id, x_origin")][1] == (
        "2026-02-01", "2026-03-01", "2026-03-01", "CoreWeave", "CW-1", "neocloud"
    )  # fmt: skip


def test_a_balance_is_paid_by_top_ups_and_used_by_machines(con: Connection, tmp_path: Path) -> None:
    path = write(
        tmp_path / "verda.csv",
        f"Verda,V-7,2026-02,{DAY},,Top-up,,,,100,EUR,25.50,,balance",
        f"Verda,,2026-02,{DAY},1H100,H100,24,Hours,2.29,54.96,EUR,,inst-1,balance",
        f"Verda,,2026-02,{DAY},,Welcome credit,,,,-10,EUR,,,balance,credit",
        header=f"{HEADER},category",
    )
    path.write_text(path.read_text().replace("balance\n", "balance,\n"))
    assert staged(con, path) == ()
    wanted = "charge_category, billed_cost, effective_cost, commitment_discount_id, commitment_discount_status"
    assert charges(con, wanted) == [
        ("Purchase", 100, 0, "balance:verda", None),
        ("Usage", 0, Decimal("54.96"), "balance:verda", "Used"),
        ("Credit", 0, -10, "balance:verda", None),
        ("Tax", Decimal("25.50"), Decimal("25.50"), None, None),
    ]
    land(con)
    compute(con)
    # What the invoice of the top-up asks is what the ledger takes from it; the gift is money of the balance too.
    used = Decimal("44.96")
    assert posted(con, "from_account") == [("invoice:Verda", Decimal("125.50")), ("prepaid:balance:verda", used)]
    prepaid = "opening, purchases, amortised_used, closing, status"
    assert con.execute(f"SELECT {prepaid} FROM prepaid").fetchall() == [(0, 100, used, 100 - used, "open")]


def test_a_commitment_of_its_own_name_is_paid_and_used(con: Connection, tmp_path: Path) -> None:
    path = write(
        tmp_path / "lambda.csv",
        "Lambda,L-1,2026-02,,,,Reserved cluster,,,,5000,USD,,,contract-1",
        f"Lambda,L-1,2026-02,{DAY},,Reserved usage,,,,200,USD,,node-9,contract-1",
        f"Lambda,L-1,2026-02,{DAY},,Refund of the contract,,,,-50,USD,,,contract-1",
    )
    assert found(staged(con, path)) == {}
    wanted = "charge_category, billed_cost, effective_cost, commitment_discount_id, commitment_discount_type"
    assert charges(con, wanted) == [
        ("Purchase", 5000, 0, "contract-1", None),
        ("Usage", 0, 200, "contract-1", None),
        ("Purchase", -50, 0, "contract-1", None),
    ]


@pytest.mark.parametrize(
    ("priced", "currency", "is_flagged"),
    [("3,u,0.333333,1.00", "USD", False), ("3,u,0.333333,1.02", "USD", True), ("7,u,10.1,71", "JPY", False),
     ("7,u,10.1,72", "JPY", True), ("-2,u,5,-10", "USD", False), (",u,5,99", "USD", False)],
)  # fmt: skip
def test_an_amount_that_is_not_price_times_quantity_is_flagged_beyond_a_cent(
    con: Connection, tmp_path: Path, priced: str, currency: str, is_flagged: bool
) -> None:
    broken = staged(con, write(tmp_path / "a.csv", f"X,1,2026-02,,,s,d,{priced},{currency},,,"))
    assert found(broken) == ({"N1": 1} if is_flagged else {})


@pytest.mark.parametrize("amount", ['"1,234.50"', "$5", "5.00 USD", "1.234,50", "(5.00)", "+5"])
def test_e40_amounts_that_are_no_plain_decimals_are_refused_by_their_row(
    con: Connection, tmp_path: Path, amount: str
) -> None:
    good, bad = "X,1,2026-02,,,s,d,,,,1.5,USD,,,", f"X,1,2026-02,,,s,d,,,,{amount},USD,,,"
    if amount == "1.234,50":
        bad = 'X,1,2026-02,,,s,d,,,,"1.234,50",USD,,,'
    with pytest.raises(InputError, match=r"a\.csv: row 3, column amount: .* is not a plain decimal number"):
        staged(con, write(tmp_path / "a.csv", good, bad))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("X,1,02/2026,,,s,d,,,,1,USD,,,", "row 2, column period: '02/2026' is not a month like 2026-05"),
        ("X,1,2026-02,2026-02-01,,s,d,,,,1,USD,,,", "row 2, column charge_start: '2026-02-01' is not an RFC 3339 time"),
        ("X,1,2026-02,2026-02-01T00:00:00,,s,d,,,,1,USD,,,", "'2026-02-01T00:00:00' has no time zone"),
        ("X,1,2026-02,,,s,d,,,,1,usd,,,", "row 2, column currency"),
        (",1,2026-02,,,s,d,,,,1,USD,,,", "row 2, column provider: must not be empty"),
    ],
)
def test_what_has_no_meaning_is_refused_by_its_row(con: Connection, tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        staged(con, write(tmp_path / "a.csv", line))
    assert said in str(caught.value)


def test_e37_an_invoice_of_2_decimals_wins_over_its_lines_of_6(con: Connection, tmp_path: Path) -> None:
    lines = [f"X,1,2026-02,{DAY},s,d,,,,{amount},USD,,," for amount in ("3.141592", "2.718281", "1.414213")]
    assert staged(con, write(tmp_path / "a.csv", *lines)) == ()
    land(con)
    invoice = {"issuer": "X", "invoice_id": "1", "period": "2026-02", "currency": "USD", "total_amount": "7.28"}
    put(con, "invoice", [invoice], kind="invoices")
    compute(con)
    reconciled = "billed_total, invoice_total, residual, status"
    assert con.execute(f"SELECT {reconciled} FROM invoice_total").fetchall() == [
        (Decimal("7.274086"), Decimal("7.28"), Decimal("0.005914"), "rounded")
    ]
    assert con.execute("SELECT sum(amount) FROM statement_line").fetchall() == [(Decimal("7.28"),)]
