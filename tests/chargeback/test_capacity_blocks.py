"""Reserved capacity in the ledger: AWS Capacity Blocks, which are one fee, and reservations paid by the hour."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.chargeback.bill import (
    HOUR,
    Row,
    account,
    at,
    booked,
    charge,
    exact,
    held,
    ledger,
    month_of,
    node,
    one,
    paid_ahead,
)
from tests.chargeback.ledger import memory_ledger

if TYPE_CHECKING:
    from store.lake import Connection


@pytest.fixture(scope="module")
def con() -> Connection:
    return memory_ledger()


BLOCK_START = datetime(2026, 10, 25, 11, 30, tzinfo=UTC)
BLOCK_END = datetime(2026, 11, 8, 11, 30, tzinfo=UTC)
FEE = Decimal("42287.62")
KEY = "capacity-block:us-east-2/p5.48xlarge/2026-10-25"


def block(identity: str = "cr-1", **more: Any) -> Row:
    return {
        "commitment_id": identity, "kind": "capacity_block", "term_start": BLOCK_START, "term_end": BLOCK_END,
        "quantity": 4, "region": "us-east-2", "instance_type": "p5.48xlarge", "status": "active",
    } | more  # fmt: skip


def ran(number: int, start: datetime, hours: int, reservation: str | None = "cr-1") -> Row:
    """A line of a machine in a block: its hours are in the fee, so it bills nothing."""
    return charge(start, start + hours * HOUR, 0, resource_id=f"i-{number}", capacity_reservation_id=reservation)


def test_o13_capacity_block_used_and_idle(con: Connection) -> None:
    """4 machines for 336 hours: 31.464002976... an instance-hour, 156.5 of the hours in October."""
    rows = [
        paid_ahead(BLOCK_START, BLOCK_END, FEE, KEY),
        *[ran(number, BLOCK_START, 125) for number in range(4)],
        *[ran(number, at("2026-11-01"), 125) for number in range(4)],
    ]
    tables = {
        "charge": rows, "commitment": [block()],
        "node": [node(number, at("2026-10-25"), at("2026-11-09")) for number in range(4)],
        "holding": [held(number, at("2026-10-25"), at("2026-11-09")) for number in range(4)],
    }  # fmt: skip
    used, idle = Decimal(0), Decimal(0)
    for period, part in (("2026-10", "19696.47"), ("2026-11", "22591.15")):
        ledger(con, period, **tables)
        assert sum(booked(con).values()) == Decimal(part)
        used, idle = used + exact(con, "held"), idle + exact(con, "unused_commitment")
    assert used + idle == FEE
    assert round(used, 2) == Decimal("31464.00")
    assert round(idle, 2) == Decimal("10823.62")
    assert round(used / 1000, 9) == Decimal("31.464002976")
    assert round(used / 8000, 9) == Decimal("3.933000372")
    assert account(con, KEY)["status"] == "used_up"
    # Nothing of it belongs to a month after it.
    ledger(con, "2026-12", **tables)
    assert con.execute("SELECT count(*) FROM posting").fetchall() == [(0,)]


def test_o13_the_fee_may_be_dated_to_the_purchase(con: Connection) -> None:
    bought = at("2026-09-20")
    rows = [paid_ahead(bought, bought + HOUR, FEE, KEY.replace("2026-10-25", "2026-09-20"))]
    ledger(con, "2026-09", charge=rows, commitment=[block()])
    assert con.execute("SELECT closing, status FROM prepaid").fetchall() == [(FEE, "open")]
    ledger(con, "2026-10", charge=rows, commitment=[block()])
    assert sum(booked(con).values()) == Decimal("19696.47")


def test_a_fee_that_is_billed_late_is_made_up_for(con: Connection) -> None:
    """Billed in November: what October used of it is November's too, and the whole term still sums to the fee."""
    rows = [paid_ahead(BLOCK_START, BLOCK_END, FEE, KEY, period=at("2026-11-01"))]
    ledger(con, "2026-10", commitment=[block()], charge=rows)
    assert booked(con) == {}
    ledger(con, "2026-11", commitment=[block()], charge=rows)
    assert sum(booked(con).values()) == FEE
    # After the term it is an adjustment.
    first, last = month_of(at("2026-12-01"))
    late = rows[0] | {"billing_period_start": first, "billing_period_end": last}
    ledger(con, "2026-12", commitment=[block()], charge=[late])
    assert booked(con) == {("platform", "adjustment"): FEE}


def test_o14_capacity_reservation_on_demand(con: Connection) -> None:
    """2 machines reserved for 24 hours at 21.957642, 34 hours used. E31: only the unused lines name the reservation."""
    start, end = at("2026-02-01"), at("2026-02-02")
    price = Decimal("21.957642")
    rows = [
        charge(start, end, 24 * price, resource_id="i-1"),
        charge(start, start + 10 * HOUR, 10 * price, resource_id="i-2"),
        charge(
            start + 10 * HOUR, end, 14 * price, capacity_reservation_id="cr-9", capacity_reservation_status="Unused"
        ),
    ]
    reservation = {
        "commitment_id": "cr-9", "kind": "capacity_reservation", "term_start": start, "term_end": end, "quantity": 2,
    }  # fmt: skip
    ledger(
        con, "2026-02", charge=rows, commitment=[reservation],
        node=[node(1, start, end), node(2, start, start + 10 * HOUR)],
        holding=[held(1, start, end), held(2, start, start + 10 * HOUR)],
    )  # fmt: skip
    assert exact(con, "held") == Decimal("746.559828")
    assert exact(con, "unused_commitment") == Decimal("307.406988")
    assert one(con, "SELECT sum(exact_amount) FROM statement_line") == Decimal("1053.966816")


def test_e29_a_cancelled_and_refunded_block_costs_nobody_anything(con: Connection) -> None:
    fee = paid_ahead(BLOCK_START, BLOCK_END, FEE, KEY)
    refund = paid_ahead(BLOCK_START, BLOCK_END, -FEE, KEY)
    ledger(con, "2026-10", charge=[fee, refund], commitment=[block(status="cancelled")])
    assert booked(con) == {}
    assert con.execute("SELECT purchases, closing FROM prepaid").fetchall() == []
    # Not refunded yet: the money lies in the account, and a gap says that nothing will use it.
    ledger(con, "2026-10", charge=[fee], commitment=[block(status="cancelled")])
    assert booked(con) == {}
    assert con.execute("SELECT kind, amount FROM gap WHERE kind LIKE 'prepaid%'").fetchall() == [
        ("prepaid_without_term", FEE)
    ]


def test_e30_two_blocks_of_one_fee_share_it_by_instance_hours(con: Connection) -> None:
    """4 machines for 14 days and 2 for 7: 1,344 and 336 hours of 1,680. Totals are preserved, each ends on time."""
    short = block("cr-2", quantity=2, term_end=at("2026-11-01T11:30"))
    rows = [paid_ahead(BLOCK_START, BLOCK_END, FEE, KEY)]
    found: dict[str, Decimal] = {}
    for period in ("2026-10", "2026-11"):
        ledger(con, period, charge=rows, commitment=[block(), short])
        for name, amount in con.execute("SELECT commitment_id, effective_cost FROM commitment_charge").fetchall():
            found[name] = found.get(name, Decimal(0)) + amount
    assert found == {"cr-1": Decimal("33830.096"), "cr-2": Decimal("8457.524")}
    assert account(con, KEY)["closing"] == 0


def test_e31_use_that_nothing_tells_is_unknown_and_not_unused(con: Connection) -> None:
    """A machine ran, but no line names the block and the block names no pool."""
    rows = [paid_ahead(BLOCK_START, BLOCK_END, FEE, KEY), ran(0, BLOCK_START, 100, None)]
    tables = {"charge": rows, "node": [node(0, BLOCK_START, BLOCK_END)], "holding": [held(0, BLOCK_START, BLOCK_END)]}
    ledger(con, "2026-10", commitment=[block()], **tables)
    assert booked(con) == {("platform", "unknown"): Decimal("19696.47")}
    assert one(con, "SELECT subject FROM gap WHERE kind = 'commitment_use_unknown'") == KEY
    assert account(con, KEY)["amortised_unknown"] == account(con, KEY)["opening"] + FEE - account(con, KEY)["closing"]
    # The pool tells: one machine of four ran.
    ledger(con, "2026-10", commitment=[block(pool="p")], **tables)
    assert booked(con) == {
        ("red", "held"): Decimal("4924.12"), ("platform", "unused_commitment"): Decimal("14772.35"),
    }  # fmt: skip
