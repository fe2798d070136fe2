"""The command `gputally waste`: what part of model servers' cost came to nothing, and what to do about it."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import click

from chargeback.finance_csv import gpu_hours
from chargeback.server_waste import server_waste
from fleet.errors import one_line
from fleet.money import minor_unit_digits
from services.commands.exact_rows import csv_bytes, plain_row
from services.commands.options import in_workspace
from services.commands.period import PERIOD
from services.terminal import say, table
from services.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from chargeback.published import Row

COLUMNS: Final = (
    "server", "team", "class", "hours", "gpu_hours", "amount", "currency", "events", "reason", "next_step",
)  # fmt: skip


@click.command()
@click.argument("period", type=PERIOD)
@click.option("--team", metavar="T", help="Only servers that this team owns.")
@click.option("--server", metavar="S", help="Only this server.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@in_workspace
def waste(folder: Path, period: str, team: str | None, server: str | None, form: str) -> None:
    """Print what of the model servers' cost in PERIOD came to nothing.

    One line per server, owning team and class, with the next step below. Each GPU-second is in one class at most:
    cold_start, asleep, idle, wasted_work and over_provisioned. It explains the cost and changes none of it. A class
    that is not listed is unknown, as is an amount that is empty, with its reason.
    """
    print_waste(folder, period, team, server, form)


def print_waste(folder: Path, period: str, team: str | None, server: str | None, form: str) -> None:
    """Print the waste of a period as `form`: "table", "csv" or "json"."""
    with Workspace.at(folder).open_lake(read_only=True) as lake:
        rows = server_waste(lake.connection, period, team, server)
    if form == "json":
        say(json.dumps([plain_row(row, COLUMNS) for row in rows], indent=2))
    elif form == "csv":
        sys.stdout.buffer.write(csv_bytes(rows, COLUMNS))
    else:
        _print_table(rows)


def _print_table(rows: list[Row]) -> None:
    for currency in dict.fromkeys(row["currency"] for row in rows):
        of_currency = [row for row in rows if row["currency"] == currency]
        digits = minor_unit_digits(currency)
        total = sum((row["amount"] for row in of_currency if row["amount"] is not None), Decimal(0))
        table(
            [
                ("server", "left"),
                ("team", "left"),
                ("class", "left"),
                ("hours", "right"),
                ("GPU hours", "right"),
                (currency, "right"),
                ("events", "right"),
            ],
            [_cells(row, digits) for row in of_currency],
            footer=["total", "", "", "", "", f"{total:,.{digits}f}", ""],
        )
    for line in dict.fromkeys(line for row in rows for line in _remarks(row)):
        say(line)


def _cells(row: Row, digits: int) -> list[str]:
    return [
        one_line(row["server"]),
        one_line(row["team"] or "-"),
        row["class"],
        f"{row['hours']:,}",
        "-" if row["gpu_microseconds"] is None else str(gpu_hours(row["gpu_microseconds"])),
        "-" if row["amount"] is None else f"{row['amount']:,.{digits}f}",
        "-" if row["events"] is None else f"{row['events']:,}",
    ]


def _remarks(row: Row) -> list[str]:
    """Why an amount is not known, and the next step where there is something to do."""
    named = f"{one_line(row['server'])} {row['class']}"
    remarks = [f"{named}: not known: {one_line(row['reason'])}"] if row["reason"] else []
    if row["amount"] or (row["reason"] and row["events"]):
        remarks.append(f"{named}: {one_line(row['next_step'])}")
    return remarks
