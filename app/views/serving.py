"""Shared model servers: what they cost, who pays for it, what a million tokens came to, and what an API would take."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import streamlit as st

from app import figures, text
from app.frame import Page, choose_currency, empty_filter, pick, rows_of, show_tiles
from app.selection import choose
from app.serving import (
    HOW,
    TOKENS,
    has_cached,
    price_cells,
    price_columns,
    show_servers,
    token_cells,
    token_columns,
)
from app.tables import Cell, Column, Link, show_table
from chargeback.api_prices import PriceList, with_api_amounts
from fleet.errors import GputallyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

ALL_SERVERS: Final = "all model servers"
MOST_TENANTS: Final = 25
REST: Final = {
    "idle": "hours in which nobody asked for anything",
    "unreported": "requests whose tokens were not reported",
    "gap": "tokens that only the engine counted",
    "unknown": "hours of which no tokens are known",
}
"""Lines that are no tenant's, in words."""


def serving_page(page: Page) -> None:
    """Draw the page."""
    totals = rows_of(page.ask("server_total"))
    currency = choose_currency(page, [row["currency"] for row in totals])
    if currency is None:
        empty_filter(
            f"No shared model server cost you anything in {page.month}",
            "Name the servers under `servers` of `[ledger]` in `gputally.toml`, load who used how many tokens with "
            "`gputally load tokens FILE`, then build the month again.",
        )
        return
    totals = [row for row in totals if row["currency"] == currency]
    server = _choose_server(page, [row["server"] for row in totals])
    totals = [row for row in totals if server in (None, row["server"])]
    lines = [
        row
        for row in rows_of(page.ask("token_price"))
        if row["currency"] == currency and server in (None, row["server"])
    ]
    _show_tiles(page, totals, currency)
    _show_days(page, server, currency)
    st.subheader("Model servers", anchor=False)
    show_servers(page, totals, currency, caption=f"{page.month}: tokens that were reported, and what they came to")
    st.caption(HOW)
    prices = _api_prices(page)
    if prices is not None:
        lines = with_api_amounts(lines, prices)
        _show_api(page, totals, lines, currency)
    _show_tenants(page, lines, currency, with_api=prices is not None)


def _choose_server(page: Page, servers: list[str]) -> str | None:
    if len(servers) < 2:
        return None
    options = [ALL_SERVERS, *servers]
    chosen, found = choose(page.selection.server, options)
    if not found:
        st.warning("The model server of the address does not exist, or cost you nothing; all of them are shown.")
    with st.columns([1, 2])[0]:
        pick("Model server", "server", options, chosen or ALL_SERVERS, lambda name: text.bounded(name, 60))
    return None if chosen == ALL_SERVERS else chosen


def _sum(rows: Sequence[Row], name: str) -> Decimal:
    return sum((row[name] for row in rows), Decimal(0))


def _count(rows: Sequence[Row], name: str) -> int | None:
    """Sum of a count, of the rows in which it is known; None where it is in none."""
    known = [row[name] for row in rows if row[name] is not None]
    return sum(known) if known else None


def _show_tiles(page: Page, totals: list[Row], currency: str) -> None:
    cost, serving, idle, rest = (
        _sum(totals, name) for name in ("amount", "serving_amount", "idle_amount", "unattributed_amount")
    )
    hours = text.gpu_hours(_count(totals, "gpu_microseconds"))
    tiles = [
        (
            "Cost" if page.scope.sees_all else "Cost to your teams",
            text.money(cost, currency),
            f"{text.count(len(totals), 'model server', 'model servers')}, {hours} GPU-hours",
        ),
        ("Paid by tenants", text.money(serving, currency), f"{text.percent(serving, cost)}, by weighted tokens"),
        ("Idle, paid by the owner", text.money(idle, currency), f"{text.percent(idle, cost)}, nobody asked"),
    ]
    if page.scope.sees_all:
        said = text.count(_count(totals, "unreported_requests") or 0, "request", "requests")
        tiles.append(("Unattributed", text.money(rest, currency), f"{text.percent(rest, cost)}, {said} without tokens"))
    known = [_count(totals, name) for name in TOKENS]
    tiles.append(
        (
            "Tokens, million",
            text.millions(sum(count or 0 for count in known)),
            f"{text.millions((known[0] or 0) + (known[1] or 0))} input, {text.millions(known[2] or 0)} output",
        )
    )
    show_tiles(tiles)


def _show_days(page: Page, server: str | None, currency: str) -> None:
    days: dict[tuple[str, str], Decimal] = {}
    for row in rows_of(page.ask("server_day")):
        if row["currency"] == currency and server in (None, row["server"]):
            key = (str(row["day"]), row["category"])
            days[key] = days.get(key, Decimal(0)) + row["amount"]
    categories = figures.ranked({category for _, category in days})
    parts = [
        (day, figures.word(category), float(amount), categories.index(category), text.amount(amount, currency))
        for (day, category), amount in sorted(days.items())
    ]
    data = pa.table(dict(zip(("day", "category", "amount", "rank", "shown"), zip(*parts, strict=True), strict=True)))
    st.subheader("By day", anchor=False)
    said = f"Cost of shared model servers by day of {page.month} in {currency}, stacked by who pays"
    axis = sorted({day for day, _ in days})
    figures.show_chart(data, figures.daily_bars(categories, currency, page.zone, axis, said), height=280)
    st.caption(figures.meanings(categories))


def _api_prices(page: Page) -> PriceList | None:
    """The configured price list; a remark in its place when it cannot be read."""
    try:
        return page.reports.api_prices()
    except GputallyError as error:
        st.warning(f"The price list of `[portal]` cannot be read: {text.plain(str(error), 300)}")
        return None


def _show_api(page: Page, totals: list[Row], lines: list[Row], currency: str) -> None:
    rows: list[list[Cell]] = []
    for total in totals:
        tenants = [line for line in lines if line["server"] == total["server"] and line["kind"] == "tenant"]
        here, known = _sum(tenants, "amount"), all(line["api_amount"] is not None for line in tenants)
        bought = _sum(tenants, "api_amount") if tenants and known else None
        amounts = [here, total["idle_amount"], here + total["idle_amount"], bought]
        rest = [text.amount(total["unattributed_amount"], currency)] if page.scope.sees_all else []
        rows.append(
            [
                total["server"],
                *(text.amount(each, currency) for each in amounts),
                text.percent(amounts[2], bought),
                *rest,
            ]
        )
    st.subheader("Self-host or buy", anchor=False)
    show_table(
        [
            Column("Model server"),
            Column("Reported tokens", f"{currency}, here", number=True),
            Column("Idle hours", f"{currency}, here", number=True),
            Column("Both", f"{currency}, here", number=True),
            Column("The same tokens", f"{currency}, at the API", number=True),
            Column("Here", "of the API's price", number=True),
            *([Column("Cannot be compared", f"{currency}, unattributed", number=True)] if page.scope.sees_all else []),
        ],
        rows,
        caption=f"At the price list {page.reports.config.portal.api_prices}; n/a: a model that it does not have",
    )
    st.caption("Less than 100 %: the tokens cost less here than at the API. What they cost here depends on the load.")


def _show_tenants(page: Page, lines: list[Row], currency: str, *, with_api: bool) -> None:
    tenants = sorted(
        (row for row in lines if row["kind"] == "tenant"),
        key=lambda row: (-row["amount"], row["server"], row["tenant"] or ""),
    )
    cached, several = has_cached(tenants), len({row["server"] for row in lines}) > 1
    prices_of = functools.partial(price_cells, currency=currency, cached=cached)
    nothing: list[Cell] = [text.NOT_KNOWN] * len(price_columns(currency, cached=cached))

    def cells(row: Row, name: str, team: Cell, prices: list[Cell]) -> list[Cell]:
        api: list[Cell] = [text.amount(row["api_amount"], currency)] if with_api else []
        where: list[Cell] = [row["server"]] if several else []
        return [name, team, *where, *token_cells(row, currency, cached=cached), *prices, *api]

    shown = [
        cells(row, row["tenant"] or "no tenant", _team_link(page, row["team"]), list(prices_of(row)))
        for row in tenants[:MOST_TENANTS]
    ]
    if rest := tenants[MOST_TENANTS:]:
        shown.append(cells(_summed(rest, with_api=with_api), f"other ({len(rest):,} tenants)", "", nothing))
    for server in dict.fromkeys(row["server"] for row in lines):
        for kind, words in REST.items():
            if of_kind := [row for row in lines if row["kind"] == kind and row["server"] == server]:
                teams = {row["team"] for row in of_kind}
                team = _team_link(page, teams.pop()) if len(teams) == 1 else ""
                shown.append(cells(_summed(of_kind, with_api=with_api), words, team, nothing))
    st.subheader("By tenant", anchor=False)
    counted = text.count(len(tenants), "tenant", "tenants")
    footer = cells(_summed(lines, with_api=with_api), counted, "", [""] * len(nothing))
    show_table(
        [
            Column("Tenant"),
            Column("Team"),
            *([Column("Model server")] if several else []),
            *token_columns(currency, cached=cached),
            *price_columns(currency, cached=cached),
            *([Column("At the API", currency, number=True)] if with_api else []),
        ],
        shown,
        caption=f"{page.month}, most expensive first; n/a: not reported",
        footer=[cell for cell in footer if isinstance(cell, str)],
    )


def _team_link(page: Page, team: str | None) -> Cell:
    return Link(team, "team", {"period": page.build.period, "team": team}) if team else "unattributed"


def _summed(rows: Sequence[Row], *, with_api: bool) -> Row:
    """Several lines as one; what is known in none of them stays unknown."""
    found: Row = {name: _count(rows, name) for name in (*TOKENS, "requests")}
    found |= {"amount": _sum(rows, "amount"), "server": rows[0]["server"] if rows else ""}
    if len({row["server"] for row in rows}) > 1:
        found["server"] = ""
    api = [row["api_amount"] for row in rows if row["kind"] == "tenant"] if with_api else []
    return found | {"api_amount": sum(api, Decimal(0)) if api and None not in api else None}
