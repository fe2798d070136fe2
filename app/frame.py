"""What every page has in common: its head, the selectors, how fresh its figures are, and what it shows when empty."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.selection import Selection, choose, parse
from app.tables import show_chips, show_note
from app.text import moment, month_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from app.access import Scope
    from app.queries import Build, Reports

KEPT = "selection_kept"
"""Session key: month, team and the like stay chosen when a reader goes to another page."""
WHAT = {
    "period": "month", "day": "day", "team": "team", "pool": "pool", "server": "model server", "category": "category",
    "currency": "currency",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """What a view works with: whose page it is, which build it shows, and what the address selects."""

    reports: Reports
    scope: Scope
    build: Build
    selection: Selection

    @property
    def zone(self) -> str:
        """The time zone in which days are shown."""
        return self.reports.config.ledger.time_zone

    @property
    def month(self) -> str:
        """The month shown, in words."""
        return month_name(self.build.period)

    def ask(self, name: str, **parameters: object) -> pa.Table:
        """The answer to a named question, as this visitor may see it."""
        return self.reports.ask(self.scope, self.build, name, **parameters)

    def ask_of_team(self, team: str, name: str, **parameters: object) -> pa.Table:
        """The answer about one team alone, as this visitor may see it."""
        return self.reports.ask_of_team(self.scope, self.build, team, name, **parameters)

    def has_input(self, kind: str) -> bool:
        """Whether a kind of file went into this build; without it a sum of zero would be a guess."""
        found = self.ask("published_build").column("inputs").to_pylist()
        return any(row[0] == kind for row in json.loads(found[0]))


def open_page(title: str, reports: Reports, scope: Scope) -> Page | None:
    """Draw the head of a page and return what it works with; None when all there is to show is why it is empty."""
    builds = reports.builds()
    if not builds:
        st.title(title, anchor=False)
        _show_unpublished(reports)
        return None
    selection, junk = read_selection()
    periods = [build.period for build in builds]
    period, found = choose(selection.period, periods)
    build = next(build for build in builds if build.period == period)
    head, side = st.columns([3, 1], vertical_alignment="bottom")
    head.title(f"{title}, {month_name(build.period)}", anchor=False)
    with side:
        pick("Month", "period", periods, build.period, month_name)
    for name in junk:
        st.warning(f"The {WHAT[name]} in the address cannot be read; the page shows its default.")
    if not found:
        empty_unpublished_month(selection.period or "")
    show_chips(
        [
            (f"build {build.build_id[:8]}, version {build.version}", False),
            (f"built {moment(build.built_at.astimezone(UTC))} UTC", False),
            (f"days and hours in {reports.config.ledger.time_zone}", False),
        ]
    )
    if reports.config.portal.notice:
        show_note([reports.config.portal.notice])
    return Page(reports, scope, build, selection)


def read_selection() -> tuple[Selection, tuple[str, ...]]:
    """What the address selects; a bare address keeps what was chosen on the page before."""
    params = st.query_params.to_dict()
    if not params and KEPT in st.session_state:
        kept: Selection = st.session_state[KEPT]
        return kept, ()
    selection, junk = parse(params)
    st.session_state[KEPT] = selection
    return selection, junk


def pick(label: str, name: str, options: Sequence[str], current: str, words: Callable[[str], str] = str) -> None:
    """Draw a selector of one part of the address. The address decides; choosing changes the address."""
    key = f"pick_{name}"
    st.session_state[key] = current
    st.selectbox(label, list(options), key=key, format_func=words, on_change=_follow, args=(name, key))


def _follow(name: str, key: str) -> None:
    selection, _ = read_selection()
    moved = selection.moved(name, st.session_state[key])
    if name == "day":
        moved, _ = parse(selection.params() | {"day": str(st.session_state[key])})
    st.session_state[KEPT] = moved
    st.query_params.from_dict(moved.params())


def show_tiles(tiles: Sequence[tuple[str, str, str]]) -> None:
    """Draw the page's main figures: (what it is, with its unit; the value; its basis), side by side as space allows."""
    with st.container(horizontal=True, key="tiles"):
        for label, value, basis in tiles:
            st.metric(label, value, basis, delta_color="off", delta_arrow="off", border=True, height="stretch")


def choose_currency(page: Page, currencies: Sequence[str]) -> str | None:
    """The currency shown: two are never added. A selector appears only when there is a choice."""
    preferred = page.reports.config.ledger.currency
    options = sorted(set(currencies), key=lambda code: (code != preferred, code))
    currency, found = choose(page.selection.currency, options)
    if not found:
        st.warning("Nothing was billed in the currency of the address; the page shows another one.")
    if currency and len(options) > 1:
        pick("Currency", "currency", options, currency)
    return currency


def _show_unpublished(reports: Reports) -> None:
    loaded = reports.sources()
    if not loaded:
        empty_nothing_loaded()
        return
    kinds = ", ".join(f"{row['source_count']} of {row['kind']}" for row in loaded)
    empty_state(
        "No month has been published yet",
        f"Files are loaded ({kinds}), but no build has been published from them.",
        "gputally build YYYY-MM",
    )


def empty_nothing_loaded() -> None:
    """Nothing loaded."""
    empty_state(
        "Nothing has been loaded yet",
        "The lake is empty. Load an inventory, holdings, charges and the invoice, then build a month.",
        "gputally load inventory inventory.csv",
    )


def empty_unpublished_month(period: str) -> None:
    """The month asked for is not published."""
    show_note([f"{month_name(period)} has not been published; `gputally build {period}` does that. "
               "The newest published month is shown instead."], warn=True)  # fmt: skip


def empty_not_allowed() -> None:
    """Not this visitor's to see."""
    empty_state(
        "You may not see this",
        "Your role sees the money of its own teams. Finance and platform see all of it; ask them for access.",
    )


def empty_filter(what: str, next_step: str) -> None:
    """The filter matches nothing."""
    empty_state(what, next_step)


def empty_state(what: str, why: str, command: str | None = None) -> None:
    """Draw why there is nothing to see and what to do next. Texts are the portal's own, or made plain by the caller."""
    with st.container(border=True):
        st.subheader(what, anchor=False)
        st.markdown(why)
        if command:
            st.code(command, language="bash")


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a small answer."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
