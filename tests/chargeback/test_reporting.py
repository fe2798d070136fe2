"""A statement in the reporting currency."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.build import prepare
from chargeback.reporting import convert_statement
from fleet.config import parse_config
from fleet.money import share_out
from tests.chargeback.bill import at, booked, charge, held, ledger, node, one
from tests.chargeback.ledger import memory_ledger, put

if TYPE_CHECKING:
    from store.lake import Connection


@pytest.fixture(scope="module")
def con() -> Connection:
    return memory_ledger()


@pytest.mark.parametrize(
    ("total", "weights", "shares"),
    [
        ("100.00", "1 1 1", "33.34 33.33 33.33"), ("-100.00", "1 1 1", "-33.34 -33.33 -33.33"),
        ("0.01", "1 1 1", "0.01 0.00 0.00"), ("0.05", "1 1 1 97", "0.00 0.00 0.00 0.05"),
        ("1000.01", "1 1 1 1 1 1 1", "142.86 142.86 142.86 142.86 142.86 142.86 142.85"),
        ("1320.96", "96.5 48.25 47.25", "663.92 331.96 325.08"),
    ],
)  # fmt: skip
def test_o10_largest_remainder(total: str, weights: str, shares: str) -> None:
    named = {str(number): Decimal(weight) for number, weight in enumerate(weights.split())}
    assert list(share_out(Decimal(total), named, digits=2).values()) == [Decimal(share) for share in shares.split()]


def test_o10_a_currency_is_converted_as_a_total_and_then_shared(con: Connection) -> None:
    """96.50, 48.25 and 47.25 EUR at 6.88 are 1,320.96 CNY: 663.92, 331.96 and 325.08, and the books stay in EUR."""
    start, end = at("2026-02-01"), at("2026-02-01T01:00")
    parts = {"a": "96.50", "b": "48.25", "c": "47.25"}
    rows = [
        charge(start, end, amount, resource_id=f"i-{number}", billing_currency="EUR")
        for number, amount in enumerate(parts.values())
    ]
    tables = {
        "charge": rows, "node": [node(number, start, end) for number in range(3)],
        "holding": [held(number, start, end, team) for number, team in enumerate(parts)],
    }  # fmt: skip
    rate = {"period": "2026-02", "currency": "EUR", "reporting_currency": "CNY", "rate": "6.88", "rate_source": "ECB"}
    ledger(con, "2026-02", '[ledger]\ncurrency = "CNY"', exchange_rate=[rate], **tables)
    found = dict(con.execute("SELECT team, amount FROM reporting_line").fetchall())
    assert found == {"a": Decimal("663.92"), "b": Decimal("331.96"), "c": Decimal("325.08")}
    with_rate = booked(con)
    ledger(con, "2026-02", '[ledger]\ncurrency = "CNY"', **tables)
    assert booked(con) == with_rate == {(team, "held"): Decimal(amount) for team, amount in parts.items()}
    assert con.execute("SELECT subject, amount, currency FROM gap WHERE kind = 'missing_rate'").fetchall() == [
        ("EUR in CNY", Decimal("192.00"), "EUR")
    ]


@given(
    amounts=st.lists(st.integers(-10_000, 100_000).filter(bool), min_size=1, max_size=6),
    rate=st.decimals("0.0001", "999", places=4),
)
@settings(max_examples=12, deadline=None)
def test_lines_in_the_reporting_currency_sum_to_the_converted_total(
    con: Connection, amounts: list[int], rate: Decimal
) -> None:
    config = parse_config('[ledger]\ncurrency = "JPY"')
    rated = {"period": "2026-02", "currency": "EUR", "reporting_currency": "JPY", "rate": rate, "rate_source": "x"}
    put(con, "exchange_rate", [rated], kind="rates")
    prepare(con, config, "2026-02")
    con.execute("CREATE OR REPLACE TEMP TABLE statement_line AS FROM lake.reporting_line LIMIT 0")
    for number, cents in enumerate(amounts):
        con.execute(
            "INSERT INTO statement_line BY NAME SELECT ? AS team, 'held' AS category, "
            "CAST(? AS DECIMAL(38, 12)) AS amount, 'EUR' AS currency",
            [f"t{number % 3}", Decimal(cents).scaleb(-2)],
        )
    convert_statement(con, "2026-02")
    total = Decimal(sum(amounts)).scaleb(-2) * rate
    assert one(con, "SELECT sum(amount) FROM reporting_line") == total.quantize(Decimal(1), "ROUND_HALF_UP")
