"""What `gputally tokens --waste` prints: the part of shared model servers' cost that came to nothing."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from chargeback.finance_csv import gpu_hours
from fleet.errors import one_line
from fleet.money import minor_unit_digits
from services.commands.exact_rows import csv_bytes, plain_row
from services.terminal import say, table

if TYPE_CHECKING:
    from chargeback.published import Row

COLUMNS: Final = ("server", "team", "class", "hours", "gpu_hours", "amount", "currency")


def print_waste(rows: list[Row], form: str) -> None:
    """Print rows of report `server_waste` as `form`: "table", "csv" or "json"."""
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
        total = sum((row["amount"] for row in of_currency), Decimal(0))
        table(
            [
                ("server", "left"),
                ("team", "left"),
                ("class", "left"),
                ("hours", "right"),
                ("GPU hours", "right"),
                (currency, "right"),
            ],
            [
                [
                    one_line(row["server"]),
                    one_line(row["team"] or "-"),
                    row["class"],
                    f"{row['hours']:,}",
                    str(gpu_hours(row["gpu_microseconds"])),
                    f"{row['amount']:,.{digits}f}",
                ]
                for row in of_currency
            ],
            footer=["total", "", "", "", "", f"{total:,.{digits}f}"],
        )
