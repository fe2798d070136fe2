"""A month of the ledger from a few rows of a bill: what the tests of commitments, invoices and currencies share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from chargeback.build import model_steps, parameters
from chargeback.checks import failed_checks
from fleet.config import parse_config
from store.sqlfile import materialise
from tests.chargeback.ledger import compute, put

if TYPE_CHECKING:
    from decimal import Decimal

    from store.lake import Connection

Row = dict[str, Any]
HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def month_of(moment: datetime) -> tuple[datetime, datetime]:
    start = moment.replace(day=1, hour=0, minute=0)
    return start, (start + timedelta(days=32)).replace(day=1)


def charge(start: datetime, end: datetime, billed: object, effective: object | None = None, **more: Any) -> Row:
    """A charge of the month in which it starts, unless `period` says another."""
    first, last = month_of(more.pop("period", start))
    return {
        "invoice_issuer": "Cloud", "billing_currency": "USD", "billing_period_start": first, "billing_period_end": last,
        "charge_period_start": start, "charge_period_end": end, "charge_category": "Usage", "billed_cost": billed,
        "effective_cost": billed if effective is None else effective,
    } | more  # fmt: skip


def paid_ahead(start: datetime, end: datetime, billed: object, commitment: str, **more: Any) -> Row:
    return charge(start, end, billed, 0, charge_category="Purchase", commitment_discount_id=commitment, **more)


def node(number: int, start: datetime, end: datetime, **more: Any) -> Row:
    return {
        "cluster": "c", "node": f"n{number}", "gpu_count": 8, "valid_from": start, "valid_to": end, "pool": "p",
        "resource_id": f"i-{number}",
    } | more  # fmt: skip


def held(number: int, start: datetime, end: datetime, team: str = "red") -> Row:
    return {"node": f"n{number}", "held_from": start, "held_to": end, "gpus": 8, "team": team}


def ledger(con: Connection, period: str, config: str = "", **tables: list[Row]) -> None:
    """Compute a month from these rows alone; every invariant holds."""
    kinds = {
        "node": "inventory", "holding": "holdings", "charge": "charges", "invoice": "invoices",
        "commitment": "commitments", "exchange_rate": "rates", "asset": "assets",
    }  # fmt: skip
    for table, kind in kinds.items():
        put(con, table, tables.get(table, []), kind=kind)
    compute(con, parse_config(config), period)
    assert failed_checks(con, parameters(period), strict=False) == []


def run(con: Connection, period: str, *steps: str) -> None:
    """Run some steps of the model over what is there."""
    for step in model_steps():
        if step.name in steps:
            materialise(con, step, parameters(period))


def booked(con: Connection) -> dict[tuple[str, str], Decimal]:
    rows = con.execute("SELECT team, category, sum(amount) FROM statement_line GROUP BY ALL").fetchall()
    return {(team, category): amount for team, category, amount in rows}


def exact(con: Connection, category: str) -> Decimal:
    query = "SELECT coalesce(sum(exact_amount), 0) FROM statement_line WHERE category = ?"
    return one(con, query, [category])


def one(con: Connection, query: str, values: list[Any] | None = None) -> Any:
    ((value,),) = con.execute(query, values or []).fetchall()
    return value


def account(con: Connection, commitment: str) -> Row:
    cursor = con.execute("SELECT * FROM prepaid WHERE commitment = ?", [commitment])
    names = [column[0] for column in cursor.description or ()]
    (row,) = cursor.fetchall()
    return dict(zip(names, row, strict=True))
