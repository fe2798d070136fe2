"""One team's statement: its lines, its days, and from a day's amount back to the pool it came from."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import streamlit as st

from app import figures, text
from app.events import bands_of, events_of, legend_of
from app.frame import Page, choose_currency, empty_filter, pick, rows_of, show_tiles
from app.selection import choose
from app.serving import HOW, show_servers
from app.tables import Column, Link, show_crumbs, show_note, show_table
from app.views.source import show_source

if TYPE_CHECKING:
    from collections.abc import Sequence


def team_page(page: Page) -> None:
    """Draw the page."""
    lines = rows_of(page.ask("statement"))
    teams = sorted({line["team"] for line in lines})
    if not teams:
        empty_filter(
            f"Nothing was charged to your teams in {page.month}",
            "The month is published. Choose another month, or ask finance which team your work is mapped to.",
        )
        return
    team, found = choose(page.selection.team, teams)
    assert team is not None
    if not found:
        st.warning("The team of the address does not exist, or you may not see it. Another team is shown.")
    with st.columns([1, 2])[0]:
        pick("Team", "team", teams, team, lambda name: text.bounded(name, 60))
    lines = [line for line in lines if line["team"] == team]
    currency = choose_currency(page, [line["currency"] for line in lines])
    assert currency is not None
    lines = [line for line in lines if line["currency"] == currency]
    show_crumbs([Link("All teams", "", {"period": page.build.period}), text.bounded(team)])
    _show_tiles(lines, currency)
    _show_lines(page, team, lines, currency)
    _show_serving(page, team, currency)
    hours = page.reports.team_hours(page.scope, page.build, currency, team)
    days = by_day(hours)
    _show_days(page, team, days, currency)
    _show_drill(page, team, hours, days, currency)
    _show_use(page, team)


def _show_tiles(lines: list[dict[str, Any]], currency: str) -> None:
    direct = [line for line in lines if line["category"] in figures.DIRECT]
    serving = [line for line in lines if line["category"] == "serving"]
    shares = [line for line in lines if line["category"] not in (*figures.DIRECT, "serving")]
    total = _sum(lines)
    first = lines[0]
    all_idle = all(line["category"] == "idle" for line in shares)
    show_tiles(
        [
            ("Total", text.money(total, currency), f"statement {first['statement']}"),
            (
                "Held",
                text.money(_sum(direct), currency),
                f"{text.gpu_hours(sum(line['gpu_microseconds'] for line in direct))} GPU-hours",
            ),
            *([_part_tile("Model serving", serving, total, currency)] if serving else []),
            _part_tile("Share of what nobody held" if all_idle else "Shares of common cost", shares, total, currency),
            (
                "Cost centre",
                text.bounded(first["cost_centre"] or "", 24) or text.NOT_KNOWN,
                f"GL account {text.plain(first['gl_account'] or text.NOT_KNOWN, 16)}",
            ),
        ]
    )


def _part_tile(label: str, lines: list[dict[str, Any]], total: Decimal, currency: str) -> tuple[str, str, str]:
    return label, text.money(_sum(lines), currency), f"{text.percent(_sum(lines), total)} of the total"


def _sum(lines: Sequence[dict[str, Any]]) -> Decimal:
    return sum((line["amount"] for line in lines), Decimal(0))


def _show_lines(page: Page, team: str, lines: list[dict[str, Any]], currency: str) -> None:
    st.subheader("Statement", anchor=False)
    hours = text.gpu_hours(sum(line["gpu_microseconds"] for line in lines))
    show_table(
        [
            Column("Category"),
            Column("Pool"),
            Column("GPU model"),
            Column("Policy"),
            Column("GPU time", "GPU-hours", number=True),
            Column("Amount", f"{currency}, month", number=True),
        ],
        [
            [
                figures.word(line["category"]),
                line["pool"],
                line["gpu_model"] or "",
                line["policy"] or "",
                text.gpu_hours(line["gpu_microseconds"]),
                text.amount(line["amount"], currency),
            ]
            for line in lines
        ],
        caption=f"{page.month}: what {text.bounded(team)} pays, as finance books it",
        footer=["Total", "", "", "", hours, text.amount(_sum(lines), currency)],
    )
    st.caption(figures.meanings(figures.ranked({line["category"] for line in lines})))


def _show_serving(page: Page, team: str, currency: str) -> None:
    """Draw what the team's tenants asked of model servers, and what model servers held of its GPUs."""
    rows = [row for row in rows_of(page.ask_of_team(team, "server_total")) if row["currency"] == currency]
    owned = rows_of(page.ask_of_team(team, "server_owner"))
    if not rows and not owned:
        return
    st.subheader("Model servers", anchor=False)
    if rows:
        show_servers(page, rows, currency, caption=f"{page.month}: what tenants of this team used")
        st.caption(HOW)
    for row in owned:
        show_note(
            [
                f"{text.bounded(row['server'])} held {text.gpu_hours(row['held_gpu_microseconds'])} GPU-hours of this "
                "team's GPUs. Its tenants pay for them, so that they are not on this statement; the team pays for the "
                "hours in which nobody asked the server for anything.",
                Link("See Serving", "serving", {"period": page.build.period, "server": row["server"]}),
            ]
        )


def by_day(hours: pa.Table) -> dict[tuple[date, str], Decimal]:
    """Amount by (day, category), exact: hours are in whole minor units that add up to the statement."""
    summed = hours.group_by(["day", "category"]).aggregate([("amount", "sum")]).to_pylist()
    days: dict[tuple[date, str], Decimal] = defaultdict(Decimal)
    for row in summed:
        days[row["day"], row["category"]] += row["amount_sum"]
    return dict(sorted(days.items()))


def _show_days(page: Page, team: str, days: dict[tuple[date, str], Decimal], currency: str) -> None:
    st.subheader("By day", anchor=False)
    if not days:
        empty_filter("No posting has a time", "The statement has lines, but no hourly posting lies behind them.")
        return
    categories = figures.ranked({category for _, category in days})
    parts = [
        (str(day), figures.word(category), float(amount), categories.index(category), text.amount(amount, currency))
        for (day, category), amount in days.items()
    ]
    data = pa.table(dict(zip(("day", "category", "amount", "rank", "shown"), zip(*parts, strict=True), strict=True)))
    axis = sorted({str(day) for day, _ in days})
    said = f"Cost of team {text.bounded(team, 40)} by day of {page.month} in {currency}, stacked by category"
    figures.show_chart(data, figures.daily_bars(categories, currency, page.zone, axis, said), height=300)
    st.caption(f"The days add up to the statement: {text.money(sum(days.values(), Decimal(0)), currency)}.")


def _show_drill(page: Page, team: str, hours: pa.Table, days: dict[tuple[date, str], Decimal], currency: str) -> None:
    if not days:
        return
    st.subheader("Where a day's amount comes from", anchor=False)
    dates = sorted({str(day) for day, _ in days})
    asked = str(page.selection.day) if page.selection.day else None
    chosen, found = choose(asked, dates)
    assert chosen is not None
    if not found:
        st.warning("Nothing was charged to this team on the day of the address; another day is shown.")
    there = figures.ranked({category for day, category in days if str(day) == chosen})
    category, found = choose(page.selection.category, there)
    assert category is not None
    if not found:
        st.warning("This day has no such category; another one is shown.")
    left, right = st.columns(2)
    with left:
        pick("Day", "day", dates, chosen, _day_words)
    with right:
        pick("Category", "category", there, category, figures.word)
    total = next(amount for (day, name), amount in days.items() if str(day) == chosen and name == category)
    base = {"period": page.build.period, "team": team}
    show_crumbs(
        [Link(text.bounded(team), "team", base), Link(chosen, "team", base | {"day": chosen}),
         figures.word(category), text.money(total, currency)]
    )  # fmt: skip
    show_source(page, team, hours, chosen, category, currency)


def _day_words(day: str) -> str:
    found = date.fromisoformat(day)
    return f"{found:%A}, {text.day(found)}"


def _show_use(page: Page, team: str) -> None:
    st.subheader("GPUs held, reserved and waited for", anchor=False)
    table = page.ask_of_team(team, "team_use_hour")
    if not table.num_rows:
        empty_filter("This team held no GPU and waited for none", "It pays shares of common cost or of model servers.")
        return
    sums = {name: sum(table[f"{name}_gpu_microseconds"].to_pylist()) for name in ("held", "quota", "pending")}
    has_quota = bool(sums["quota"])
    data = figures.gpu_series(table, {"held": "held", "quota": "quota", "queued": "pending"})
    events = events_of(page)
    said = f"GPUs of team {text.bounded(team, 40)} by hour of {page.month}: held, reserved by quota, queued"
    figures.show_chart(data, figures.team_curve(bands_of(events), page.zone, said), height=330)
    reserved = f"{text.gpu_hours(sums['quota'])} reserved by quota" if has_quota else "no quota is loaded for it"
    st.caption(
        f"GPU-hours of the month: {text.gpu_hours(sums['held'])} held, {reserved}, "
        f"{text.gpu_hours(sums['pending'])} queued." + (f" Shaded: {legend_of(events)}." if events else "")
    )
    _show_conflicts(page, team)


def _show_conflicts(page: Page, team: str) -> None:
    for row in rows_of(page.ask_of_team(team, "team_quota_conflict")):
        show_note(
            [
                f"From {text.moment(row['local_from'])} to {text.moment(row['local_to'])} {page.zone} two quota "
                f"files disagree about this team: {row['source']}, which decides, says {text.gpus(row['gpus'])} "
                f"GPUs; {row['other_source']} says {text.gpus(row['other_gpus'])}. "
                "It changes nothing in what the team pays.",
            ],
            warn=True,
        )
