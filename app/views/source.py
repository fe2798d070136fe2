"""The last step of a drill-down: each hour of a day, the account its money left, and the arithmetic of the share."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from app import text
from app.frame import rows_of
from app.tables import Column, show_table

if TYPE_CHECKING:
    from app.frame import Page

MOST_ROWS = 120
"""A day has 24 hours; a team spread over many nodes has many accounts in each."""
_SHARES = MappingProxyType(
    {
        "pool": ("Weight", "All weights", "of this team", "of all teams"),
        "server": ("Its part", "Model server", "GPU-hours", "GPU-hours"),
        "node": ("Held", "Offered", "GPU-hours", "GPU-hours"),
    }
)
"""By the ledger's step: what the team's share is of, in two columns with their units."""


def show_source(page: Page, team: str, hours: pa.Table, day: str, category: str, currency: str) -> None:
    """Draw the hours of one day and category."""
    on = date.fromisoformat(day)
    rows = rows_of(page.ask_of_team(team, "team_source", currency=currency, category=category, day=on))
    of_day = pc.and_(pc.equal(hours["day"], pa.scalar(on)), pc.equal(hours["category"], category))
    total = pc.sum(hours["amount"].filter(of_day)).as_py()
    if not rows:
        return
    st.markdown(_in_words(rows[0], currency))
    part, whole, part_unit, whole_unit = _SHARES.get(rows[0]["step"], _SHARES["node"])
    shown = rows[:MOST_ROWS]
    columns = [
        Column("Hour", page.zone),
        Column("From", "account"),
        Column("Paid out to all", currency, number=True),
        Column(part, part_unit, number=True),
        Column(whole, whole_unit, number=True),
        Column("Share", "%", number=True),
        Column("Exact amount", currency, number=True),
    ]
    show_table(
        columns,
        [
            [
                row["local_hour"],
                row["from_account"],
                text.exact(row["account_amount"]),
                *_share(row),
                text.exact(row["amount"]),
            ]
            for row in shown
        ],
        caption="Each hour: what the account paid out, times the team's share",
        footer=[
            text.count(len(rows), "row", "rows"),
            "" if len(rows) == len(shown) else f"the first {len(shown):,} are shown",
            "", "", "", "exact sum",
            text.exact(sum((row["amount"] for row in rows), Decimal(0))),
        ],
    )  # fmt: skip
    st.caption(
        f"Booked for this day: {text.money(total, currency)}. Days are cut from the rounded running total of the line, "
        "so that they add up to the statement to the cent; an exact sum may be a cent away."
    )


def _share(row: dict[str, Any]) -> tuple[str, str, str]:
    if row["step"] == "pool":
        part, whole = row["weight"], row["total_weight"]
        as_money = row["policy"] in ("proportional", "quota")
        words = [_weight(value, as_money=as_money) for value in (part, whole)]
    else:
        part, whole = row["gpu_microseconds"], row["account_gpu_microseconds"]
        words = [text.gpu_hours(value, 4) for value in (part, whole)]
    share = text.NOT_KNOWN if part is None or not whole else text.exact(Decimal(part) * 100 / Decimal(whole), 4)
    return words[0], words[1], share


def _weight(value: Decimal | None, *, as_money: bool) -> str:
    if value is None:
        return text.NOT_KNOWN
    return text.exact(value.scaleb(-12), 2) if as_money else f"{value:,f}"


def _in_words(row: dict[str, Any], currency: str) -> str:
    """The rule behind a share in one sentence. `row` is one hour's source."""
    pool = text.plain(row["pool"] or "")
    account, policy = text.plain(row["from_account"]), text.plain(row["policy"] or text.NOT_KNOWN)
    if row["step"] == "pool":
        basis = {
            "proportional": "the weight is what the team pays in the pool this month for GPUs that it held and for "
            f"model servers, in {currency}",
            "quota": f"the weight is the team's quota that it did not hold, priced hour by hour, in {currency}",
            "even": "the weight is 1 for every team that held anything in the pool",
        }.get(row["policy"], "the central team takes it")
        rule = f"Account {account} of pool {pool} is shared by policy {policy}"
        return f"{rule}: {basis}. The weights hold for the whole month."
    if row["step"] == "server":
        rule = f"The account of a model server is divided hour by hour by policy {policy}"
        if row["policy"] != "tokens":
            return f"{rule}: nobody asked the model server for anything, so the team that owns it pays."
        return (
            f"{rule}: by the tokens of its tenants, of which cached input weighs less and output more than input. "
            "The GPU-hours that the model server held are divided alike, and show the team's share."
        )
    return (
        f"Account {account} of pool {pool} is shared by policy {policy}: what the hour's free capacity cost, "
        "times the team's part of its GPU time. What nobody held stays in the pool as idle."
    )
