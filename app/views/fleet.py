"""The fleet: capacity, held, idle and queued, what happened to it, and who waited while whose quota stood unheld."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import streamlit as st

from app import figures, text
from app.events import Event, bands_of, events_of, lasted, legend_of
from app.frame import Page, empty_filter, pick, rows_of, show_tiles
from app.selection import choose
from app.tables import Column, Link, show_note, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

ALL_POOLS = "all pools"
SERIES = {"held": "held", "capacity": "capacity", "queued": "pending"}


def fleet_page(page: Page) -> None:
    """Draw the page."""
    table = page.ask("fleet_hour")
    if not table.num_rows:
        empty_filter(
            f"No GPU is known in {page.month}",
            "The inventory has no GPU in this month. Load one with `gputally load inventory FILE`, "
            "then build the month again.",
        )
        return
    pools = sorted(set(table["pool"].to_pylist()))
    pool = None
    if len(pools) > 1:
        chosen, found = choose(page.selection.pool, [ALL_POOLS, *pools])
        if not found:
            st.warning("The pool of the address does not exist; all pools are shown.")
        pick("Pool", "pool", [ALL_POOLS, *pools], chosen or ALL_POOLS, lambda name: text.bounded(name, 60))
        pool = None if chosen == ALL_POOLS else chosen
    if pool:
        table = table.filter(pc.equal(table["pool"], pool))
    events = [event for event in events_of(page) if pool in (None, event.pool)]
    _show_tiles(page, table)
    _show_curve(page, table, events)
    _show_events(page, events)
    _show_queue(page, pool)
    _show_conflicts(page, pool)


def _show_tiles(page: Page, table: pa.Table) -> None:
    def total(name: str) -> int:
        return sum(table[f"{name}_gpu_microseconds"].to_pylist())

    capacity, pending = total("capacity"), total("pending")
    tiles = [
        ("Capacity, GPU-hours", text.gpu_hours(capacity), "what could be held"),
        ("Held, GPU-hours", text.gpu_hours(total("held")), f"{text.percent(total('held'), capacity)} of capacity"),
        ("Idle, GPU-hours", text.gpu_hours(total("idle")), f"{text.percent(total('idle'), capacity)} of capacity"),
    ]
    if page.has_input("demand"):
        stuck = total("pending_while_idle")
        says = f"{text.percent(stuck, pending)} of queued" if pending else "nobody waited"
        tiles += [
            ("Queued, GPU-hours", text.gpu_hours(pending), "GPUs waited for, times hours"),
            ("Queued while idle, GPU-hours", text.gpu_hours(stuck), says),
        ]
    else:
        tiles.append(("Queued, GPU-hours", text.NOT_KNOWN, "no demand is loaded"))
    show_tiles(tiles)


def _show_curve(page: Page, table: pa.Table, events: Sequence[Event]) -> None:
    st.subheader("Hour by hour", anchor=False)
    summed = table.group_by(["hour_start", "local_start"]).aggregate(
        [(f"{name}_gpu_microseconds", "sum") for name in SERIES.values()]
    )
    data = figures.gpu_series(summed.sort_by("hour_start"), SERIES, suffix="_sum")
    said = (
        f"GPUs of the fleet by hour of {page.month}: held, idle up to the capacity, and queued; "
        f"{text.count(len(events), 'stretch is', 'stretches are')} marked"
    )
    figures.show_chart(data, figures.fleet_curve(bands_of(events), page.zone, said), height=340)
    measured = "held" not in page.ask("team_category")["category"].to_pylist()
    st.caption(
        f"Held: someone had the GPU, whether it worked or not{'' if measured else ' (activity was not measured)'}. "
        "Idle: capacity that nobody held." + (f" Shaded: {legend_of(events)}." if events else "")
    )


def _show_events(page: Page, events: Sequence[Event]) -> None:
    st.subheader("What happened", anchor=False)
    if not events:
        st.markdown("No stop of a pool in use, and no quota files that disagree.")
        return
    show_table(
        [Column("No."), Column("What"), Column("Pool"), Column("From", page.zone), Column("To", page.zone),
         Column("Lasted"), Column("In words")],
        [
            [event.mark, event.kind, event.pool, text.moment(event.start), text.moment(event.end),
             lasted(event.start, event.end), event.words]
            for event in events
        ],
        caption="Shown as what they are; who pays is unchanged by them",
    )  # fmt: skip


def _show_queue(page: Page, pool: str | None) -> None:
    st.subheader("Who waited, and whose quota stood unheld", anchor=False)
    rows = [row for row in rows_of(page.ask("team_queue")) if pool in (None, row["pool"])]
    if not rows:
        empty_filter("No team held, reserved or waited for a GPU", "Load holdings, quotas or demand for this month.")
        return
    waited = page.has_input("demand")
    names = ("pending", "pending_while_idle", "held", "quota", "unheld_quota", "unheld_while_others_waited")
    several = len({row["pool"] for row in rows}) > 1
    columns = [
        Column("Team"),
        *([Column("Pool")] if several else []),
        Column("Queued", "GPU-hours", number=True),
        Column("... while GPUs were idle", "GPU-hours", number=True),
        Column("Held", "GPU-hours", number=True),
        Column("Quota", "GPU-hours", number=True),
        Column("Quota not held", "GPU-hours", number=True),
        Column("... while others waited", "GPU-hours", number=True),
    ]
    show_table(
        columns,
        [
            [
                Link(row["team"], "team", {"period": page.build.period, "team": row["team"]}),
                *([row["pool"]] if several else []),
                *(_hours(row, name, waited=waited) for name in names),
            ]
            for row in rows
        ],
        caption=f"{page.month}, longest queue first; n/a: no quota or no demand is loaded",
        footer=[
            text.count(len({row["team"] for row in rows}), "team", "teams"),
            *([""] if several else []),
            *(_total(rows, name, waited=waited) for name in names),
        ],
    )
    _headline(rows)


def _hours(row: dict[str, Any], name: str, *, waited: bool) -> str:
    if not waited and ("pending" in name or "waited" in name):
        return text.NOT_KNOWN
    return text.gpu_hours(row[f"{name}_gpu_microseconds"])


def _total(rows: Sequence[dict[str, Any]], name: str, *, waited: bool) -> str:
    known = [row[f"{name}_gpu_microseconds"] for row in rows if row[f"{name}_gpu_microseconds"] is not None]
    return _hours({f"{name}_gpu_microseconds": sum(known) if known else None}, name, waited=waited)


def _headline(rows: Sequence[dict[str, Any]]) -> None:
    waited = max(rows, key=lambda row: row["pending_while_idle_gpu_microseconds"])
    unheld = [row for row in rows if row["unheld_while_others_waited_gpu_microseconds"]]
    if not waited["pending_while_idle_gpu_microseconds"] or not unheld:
        return
    kept = max(unheld, key=lambda row: row["unheld_while_others_waited_gpu_microseconds"])
    show_note(
        [
            f"{text.bounded(waited['team'])} waited longest while GPUs were idle: "
            f"{text.gpu_hours(waited['pending_while_idle_gpu_microseconds'])} GPU-hours. "
            f"Most quota that stood unheld while others waited was that of {text.bounded(kept['team'])}: "
            f"{text.gpu_hours(kept['unheld_while_others_waited_gpu_microseconds'])} GPU-hours.",
        ]
    )


def _show_conflicts(page: Page, pool: str | None) -> None:
    rows = [row for row in rows_of(page.ask("team_quota_conflict")) if pool in (None, row["pool"])]
    if not rows:
        return
    with st.expander(f"Quota files that disagree, team by team ({text.count(len(rows), 'row', 'rows')})"):
        show_table(
            [Column("Team"), Column("From", page.zone), Column("To", page.zone), Column("File of record"),
             Column("Its quota", "GPUs", number=True), Column("Other file"), Column("Its quota", "GPUs", number=True)],
            [
                [row["team"], text.moment(row["local_from"]), text.moment(row["local_to"]), row["source"],
                 text.gpus(row["gpus"]), row["other_source"], text.gpus(row["other_gpus"])]
                for row in rows
            ],
            caption="0: the file does not name the team at that time, or says 0",
        )  # fmt: skip
