"""What `gputally statement --currency` prints: lines in the reporting currency, with what was booked beside each."""

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

COLUMNS: Final = (
    "period", "statement", "team", "cost_centre", "gl_account", "category", "pool", "gpu_model", "gpu_hours", "amount",
    "currency", "policy", "booked_amount", "booked_currency", "rate", "rate_source",
)  # fmt: skip


def print_reported(rows: list[Row], form: str) -> None:
    """Print rows of `chargeback.reporting.reported_rows` as `form`: "table", "csv" or "json"."""
    if form == "json":
        say(json.dumps([_plain(row) for row in rows], indent=2))
    elif form == "csv":
        sys.stdout.buffer.write(_csv_bytes(rows))
    else:
        _print_table(rows)


def _plain(row: Row) -> dict[str, Any]:
    """Amounts as text: JSON numbers are floats to most readers."""
    values = row | {
        "gpu_hours": gpu_hours(row["gpu_microseconds"]),
        "amount": format_plain(row["amount"], minor_unit_digits(row["currency"])),
        "booked_amount": format_plain(row["booked_amount"], minor_unit_digits(row["booked_currency"])),
        "rate": None if row["rate"] is None else f"{row['rate'].normalize():f}",
    }
    return {name: values[name] for name in COLUMNS}


def _csv_bytes(rows: list[Row]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        plain = _plain(row)
        writer.writerow([guarded(plain[name]) if isinstance(row.get(name), str) else plain[name] for name in COLUMNS])
    return stream.getvalue().encode("utf-8")


def _print_table(rows: list[Row]) -> None:
    for currency in dict.fromkeys(row["currency"] for row in rows):
        digits = minor_unit_digits(currency)
        total = sum((row["amount"] for row in rows), Decimal(0))
        table(
            [
                ("team", "left"),
                ("category", "left"),
                ("pool", "left"),
                ("model", "left"),
                (currency, "right"),
                ("booked", "right"),
                ("", "left"),
                ("rate", "right"),
                ("rate source", "left"),
            ],
            [
                [
                    one_line(row["team"]),
                    row["category"],
                    one_line(row["pool"]),
                    row["gpu_model"] or "-",
                    f"{row['amount']:,.{digits}f}",
                    f"{row['booked_amount']:,.{minor_unit_digits(row['booked_currency'])}f}",
                    row["booked_currency"],
                    "-" if row["rate"] is None else f"{row['rate'].normalize():f}",
                    one_line(row["rate_source"] or "-"),
                ]
                for row in rows
            ],
            footer=["total", "", "", "", f"{total:,.{digits}f}", "", "", "", ""],
        )
