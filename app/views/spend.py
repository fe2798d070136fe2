"""The month's spend by team against the invoice."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import streamlit as st

from app import figures, text
from app.frame import Page, choose_currency, empty_filter, rows_of, show_tiles
from app.tables import Cell, Column, Link, show_note, show_table
from app.views.proof import show_bridge, show_export, show_gaps

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_BARS = 20
MOST_ROWS = 200


@dataclass(slots=True)
class TeamSpend:
    """One team's month in one currency."""

    team: str
    cost_centre: str | None = None
    amounts: dict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    direct_gpu_microseconds: int = 0
    serving_gpu_microseconds: int = 0
    idle_gpu_microseconds: int = 0

    @property
    def total(self) -> Decimal:
        """Everything it pays."""
        return sum(self.amounts.values(), Decimal(0))

    @property
    def direct(self) -> Decimal:
        """What it had itself."""
        return sum((self.amounts[name] for name in self.amounts if name in figures.DIRECT), Decimal(0))

    @property
    def serving(self) -> Decimal:
        """What it asked of shared model servers."""
        return self.amounts.get("serving", Decimal(0))

    @property
    def idle(self) -> Decimal:
        """Its share of what nobody held."""
        return self.amounts.get("idle", Decimal(0))

    @property
    def other(self) -> Decimal:
        """Its share of everything else."""
        return self.total - self.direct - self.serving - self.idle

    def add(self, row: dict[str, Any]) -> None:
        """Count one category's row."""
        self.amounts[row["category"]] += row["amount"]
        if row["category"] in figures.DIRECT:
            self.direct_gpu_microseconds += row["gpu_microseconds"]
        elif row["category"] == "serving":
            self.serving_gpu_microseconds += row["gpu_microseconds"]
        elif row["category"] == "idle":
            self.idle_gpu_microseconds += row["gpu_microseconds"]


def spend_page(page: Page) -> None:
    """Draw the page."""
    rows = rows_of(page.ask("team_category"))
    currency = choose_currency(page, [row["currency"] for row in rows])
    if currency is None:
        empty_filter(
            f"Nothing was charged in {page.month}",
            "The month is published and its statement has no line for what you may see. "
            "Load charges for it, or choose another month.",
        )
        return
    teams = by_team([row for row in rows if row["currency"] == currency])
    everyone = total_of(teams)
    _show_tiles(page, everyone, currency)
    _show_events(page)
    _show_bars(page, teams, currency)
    _show_teams(page, teams, everyone, currency)
    if page.scope.sees_all:
        show_bridge(page)
        show_gaps(page)
        show_export(page)


def by_team(rows: Sequence[dict[str, Any]]) -> list[TeamSpend]:
    """Each team's month, the most expensive first."""
    teams: dict[str, TeamSpend] = {}
    for row in rows:
        team = teams.setdefault(row["team"], TeamSpend(row["team"], row["cost_centre"]))
        team.add(row)
    return sorted(teams.values(), key=lambda team: (-team.total, team.team))


def total_of(teams: Sequence[TeamSpend], name: str = "Total") -> TeamSpend:
    """All given teams as one."""
    total = TeamSpend(name)
    for team in teams:
        for category, amount in team.amounts.items():
            total.amounts[category] += amount
        total.direct_gpu_microseconds += team.direct_gpu_microseconds
        total.serving_gpu_microseconds += team.serving_gpu_microseconds
        total.idle_gpu_microseconds += team.idle_gpu_microseconds
    return total


def _show_tiles(page: Page, everyone: TeamSpend, currency: str) -> None:
    total = everyone.total
    tiles = [_invoice_tile(page, currency)] if page.scope.sees_all else []
    tiles += [
        ("Statements", text.money(total, currency), text.count(_team_count(page, currency), "team", "teams")),
        (
            "Held by teams",
            text.money(everyone.direct, currency),
            f"{text.percent(everyone.direct, total)}, {text.gpu_hours(everyone.direct_gpu_microseconds)} GPU-hours",
        ),
        (
            "Held by nobody (idle)" if page.scope.sees_all else "Share of what nobody held",
            text.money(everyone.idle, currency),
            f"{text.percent(everyone.idle, total)}, {text.gpu_hours(everyone.idle_gpu_microseconds)} GPU-hours",
        ),
    ]
    if everyone.serving:
        says = f"{text.percent(everyone.serving, total)}, {text.gpu_hours(everyone.serving_gpu_microseconds)} GPU-hours"
        tiles.insert(-1, ("Model serving", text.money(everyone.serving, currency), says))
    if other := everyone.other:
        tiles.append(("Other shared costs", text.money(other, currency), f"{text.percent(other, total)}, named below"))
    tiles.append(_queue_tile(page))
    show_tiles(tiles)
    remarks = []
    if "held" in everyone.amounts:
        remarks.append(
            "Activity was not measured this month: GPU-hours are charged as held, not split into used and unused."
        )
    if everyone.idle and (policy := idle_policy(page, currency)):
        remarks.append(f"Idle cost is shared by policy {policy}.")
    rare = [name for name in ("held_idle", "serving", "unattributed") if name in everyone.amounts]
    remarks.append(figures.meanings(rare))
    st.caption(" ".join(remarks))


def _invoice_tile(page: Page, currency: str) -> tuple[str, str, str]:
    rows = [row for row in rows_of(page.ask("bridge")) if row["currency"] == currency]
    if not rows or any(row["invoice_total"] is None for row in rows):
        return "Invoice", text.NOT_KNOWN, "no invoice is loaded"
    invoice = sum((row["invoice_total"] for row in rows), Decimal(0))
    open_rest = sum((row["difference"] for row in rows), Decimal(0))
    says = f"difference {text.amount(open_rest, currency)}"
    return (
        "Invoice",
        text.money(invoice, currency),
        f"reconciled, {says}" if open_rest == 0 else f"NOT reconciled, {says}",
    )


def _queue_tile(page: Page) -> tuple[str, str, str]:
    label = "Queued while idle, GPU-hours"
    if not page.has_input("demand"):
        return label, text.NOT_KNOWN, "no demand is loaded"
    table = page.ask("fleet_hour")
    wasted, queued = (sum(table[f"{name}_gpu_microseconds"].to_pylist()) for name in ("pending_while_idle", "pending"))
    return label, text.gpu_hours(wasted), f"of {text.gpu_hours(queued)} GPU-hours queued"


def idle_policy(page: Page, currency: str) -> str:
    """The policy, or policies, by which idle cost was shared."""
    rows = rows_of(page.ask("pool_policy"))
    found = sorted({row["policy"] for row in rows if row["kind"] == "idle" and row["currency"] == currency})
    return ", ".join(f"`{name}`" for name in found)


def _team_count(page: Page, currency: str) -> int:
    return len({row["team"] for row in rows_of(page.ask("team_category")) if row["currency"] == currency})


def _show_events(page: Page) -> None:
    stops = page.ask("fleet_stop").num_rows
    conflicts = page.ask("fleet_quota_conflict").num_rows
    if not stops and not conflicts:
        return
    found = []
    if stops:
        found.append(
            text.count(
                stops, "stretch in which no GPU of a pool was held", "stretches in which no GPU of a pool was held"
            )
        )
    if conflicts:
        found.append(text.count(conflicts, "disagreement between quota files", "disagreements between quota files"))
    show_note(
        [
            f"This month has {' and '.join(found)}. They are marked, and change nobody's share.",
            Link("See Fleet", "fleet", {"period": page.build.period}),
        ]
    )


def _show_bars(page: Page, teams: list[TeamSpend], currency: str) -> None:
    shown = teams
    if len(teams) > MOST_BARS:
        rest = teams[MOST_BARS:]
        shown = [*teams[:MOST_BARS], total_of(rest, f"other ({len(rest):,} teams)")]
    categories = figures.ranked({name for team in shown for name in team.amounts})
    names = [text.bounded(team.team, 40) for team in shown]
    parts = [
        (
            names[place],
            figures.word(category),
            float(team.amounts[category]),
            rank,
            text.amount(team.amounts[category], currency),
        )
        for place, team in enumerate(shown)
        for rank, category in enumerate(categories)
        if category in team.amounts
    ]
    data = pa.table(dict(zip(("team", "category", "amount", "rank", "shown"), zip(*parts, strict=True), strict=True)))
    st.subheader("By team", anchor=False)
    spec = figures.team_bars(
        categories,
        currency,
        names,
        f"Cost of {page.month} by team in {currency}, stacked by category; the table below has the figures",
    )
    figures.show_chart(data, spec, height=90 + 24 * len(shown))


def _show_teams(page: Page, teams: list[TeamSpend], everyone: TeamSpend, currency: str) -> None:
    with_serving = any(team.serving for team in teams)
    with_other = any(team.other for team in teams)
    columns = [
        Column("Team"),
        Column("Cost centre"),
        Column("Held", "GPU-hours", number=True),
        Column("Held cost", f"{currency}, month", number=True),
        *([Column("Model serving", f"{currency}, month", number=True)] if with_serving else []),
        Column("Share of idle", f"{currency}, month", number=True),
        *([Column("Other shares", f"{currency}, month", number=True)] if with_other else []),
        Column("Total", f"{currency}, month", number=True),
        Column("Part of total", number=True),
    ]

    def cells(team: TeamSpend, name: Cell) -> list[Cell]:
        return [
            name,
            team.cost_centre or "",
            text.gpu_hours(team.direct_gpu_microseconds),
            text.amount(team.direct, currency),
            *([text.amount(team.serving, currency)] if with_serving else []),
            text.amount(team.idle, currency),
            *([text.amount(team.other, currency)] if with_other else []),
            text.amount(team.total, currency),
            text.percent(team.total, everyone.total),
        ]

    rows = [
        cells(team, Link(team.team, "team", {"period": page.build.period, "team": team.team}))
        for team in teams[:MOST_ROWS]
    ]
    if rest := teams[MOST_ROWS:]:
        rows.append(cells(total_of(rest), f"other ({len(rest):,} teams)"))
    footer = [cell for cell in cells(everyone, text.count(len(teams), "team", "teams")) if isinstance(cell, str)]
    show_table(columns, rows, caption=f"{page.month}: cost by team, in {currency}", footer=footer)
