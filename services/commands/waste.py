"""What `gputally tokens --waste` prints: the part of shared model servers' cost that came to nothing."""

from __future__ import annotations

import csv
import io
import json
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from chargeback.finance_csv import gpu_hours, guarded
from fleet.errors import one_line
from fleet.money import format_plain, minor_unit_digits
from services.terminal import say, table

if TYPE_CHECKING:
    from chargeback.published import Row

COLUMNS: Final = ("server", "team", "class", "hours", "gpu_hours", "amount", "currency")
EXACT_DIGITS = 12


def print_waste(rows: list[Row], form: str) -> None:
    """Print rows of report `server_waste` as `form`: "table", "csv" or "json"."""
    plain = [_plain(row) for row in rows]
    if form == "json":
        say(json.dumps(plain, indent=2))
    elif form == "csv":
        stream = io.StringIO(newline="")
        writer = csv.writer(stream, lineterminator="\r\n")
        writer.writerow(COLUMNS)
        for row in plain:
            # Only numbers of ours may open with a sign.
            writer.writerow([guarded(row[name]) if name in ("server", "team") else row[name] for name in COLUMNS])
        sys.stdout.buffer.write(stream.getvalue().encode("utf-8"))
    else:
        _print_table(rows)


def _plain(row: Row) -> dict[str, Any]:
    amount = format_plain(row["amount"], EXACT_DIGITS)
    values = row | {"gpu_hours": gpu_hours(row["gpu_microseconds"]), "amount": amount}
    return {
        name: format_plain(values[name], EXACT_DIGITS) if isinstance(values[name], Decimal) else values[name]
        for name in COLUMNS
    }


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
