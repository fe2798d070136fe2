"""Commands on the bill of a period: what is paid ahead, and how invoices and charges meet."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import click

from chargeback.published import published_build, read
from fleet.errors import one_line
from fleet.money import minor_unit_digits
from services.commands.exact_rows import csv_bytes, plain_row
from services.commands.options import in_workspace
from services.commands.period import PERIOD
from services.terminal import say, table
from services.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from chargeback.published import Row

PREPAID: Final = (
    "issuer", "commitment", "kind", "term_start", "term_end", "opening", "purchases", "amortised_used",
    "amortised_unused", "amortised_unknown", "closing", "currency", "status",
)  # fmt: skip
RECONCILED: Final = (
    "issuer", "invoice_id", "invoice_count", "charge_count", "billed_total", "tax_total", "absent_tax", "invoice_total",
    "residual", "tolerance", "currency", "status",
)  # fmt: skip
UNMATCHED: Final = (
    "side", "subject", "gap_from", "gap_to", "gpu_hours", "amount", "currency", "is_estimate", "reason",
)  # fmt: skip
FORM: Final = click.Choice(["table", "csv", "json"])


@click.command()
@click.argument("period", type=PERIOD)
@click.option("--format", "form", type=FORM, default="table", show_default=True)
@in_workspace
def prepaid(folder: Path, period: str, form: str) -> None:
    """Print the prepaid accounts of the published PERIOD: what is paid and not yet consumed.

    One line per commitment: opening, purchases, what was amortised (used, unused, or used by nobody knows whom) and
    closing. A month opens with what the month before closed with. The sum of the changes is the change in prepaid that
    the bridge shows.
    """
    rows = published_rows(folder, "prepaid", period)
    print_rows(rows, PREPAID, form, _prepaid_table)


@click.command()
@click.argument("period", type=PERIOD)
@click.option("--unmatched", is_flag=True, help="Instead: resources that only the bill or only the inventory knows.")
@click.option("--format", "form", type=FORM, default="table", show_default=True)
@in_workspace
def reconcile(folder: Path, period: str, form: str, *, unmatched: bool) -> None:
    """Print each invoice of the published PERIOD beside its charges: tax, what is left, tolerance and verdict.

    A rest within the tolerance of FOCUS 1.4 is booked as rounding. A larger one refuses the build, so it is not seen
    here. Charges that name no invoice are compared with the invoices that no charge names, as one line.

    With --unmatched, resources that are billed and are no node, and nodes that no charge pays for; the amount of the
    latter is an estimate at the average price of their pool, else of their GPU model.
    """
    if unmatched:
        rows = published_rows(folder, "unmatched", period)
        print_rows(rows, UNMATCHED, form, _unmatched_table)
        return
    print_rows(published_rows(folder, "reconciliation", period), RECONCILED, form, _invoice_table)


def published_rows(folder: Path, report: str, period: str) -> list[Row]:
    """Rows of a report on a published period. Raises NotBuiltError when it is not built."""
    with Workspace.at(folder).open_lake(read_only=True) as lake:
        published_build(lake.connection, period)
        return read(lake.connection, report, period)


def print_rows(rows: list[Row], columns: Sequence[str], form: str, draw: Callable[[str, list[Row]], None]) -> None:
    """Print rows as `form`: "table" (drawn by `draw`, one for each currency), "csv" or "json"."""
    if form == "json":
        say(json.dumps([plain_row(_timeless(row), columns) for row in rows], indent=2))
    elif form == "csv":
        sys.stdout.buffer.write(csv_bytes([_worded(_timeless(row)) for row in rows], columns))
    else:
        for currency in dict.fromkeys(row["currency"] for row in rows):
            draw(currency, [row for row in rows if row["currency"] == currency])


def _timeless(row: Row) -> Row:
    """Times as text, and the GPU time that exact rows have."""
    texts = {name: f"{value:%Y-%m-%dT%H:%M:%SZ}" for name, value in row.items() if hasattr(value, "tzinfo")}
    return row | texts | {"gpu_microseconds": row.get("gpu_microseconds") or 0}


def _worded(row: Row) -> Row:
    """Truth in the words of JSON, not of Python."""
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in row.items()}


def _prepaid_table(currency: str, rows: list[Row]) -> None:
    amounts = ("opening", "purchases", "amortised_used", "amortised_unused", "amortised_unknown", "closing")
    table(
        [
            ("issuer", "left"),
            ("commitment", "left"),
            ("opening", "right"),
            ("purchases", "right"),
            ("used", "right"),
            ("unused", "right"),
            ("unknown", "right"),
            (f"closing {currency}", "right"),
            ("status", "left"),
        ],
        [
            [
                one_line(row["issuer"]),
                one_line(row["commitment"]),
                *[_money(row[name], currency) for name in amounts],
                row["status"].replace("_", " "),
            ]
            for row in rows
        ],
        footer=["total", "", *[_money(_sum(rows, name), currency) for name in amounts], ""],
    )


def _invoice_table(currency: str, rows: list[Row]) -> None:
    amounts = ("billed_total", "absent_tax", "invoice_total", "residual")
    table(
        [
            ("issuer", "left"),
            ("invoice", "left"),
            ("charges", "right"),
            ("billed", "right"),
            ("tax beside", "right"),
            (f"invoice {currency}", "right"),
            ("left", "right"),
            ("tolerance", "right"),
            ("status", "left"),
        ],
        [
            [
                one_line(row["issuer"]),
                one_line(row["invoice_id"] or (f"({row['invoice_count']} invoices)" if row["invoice_count"] else "-")),
                f"{row['charge_count']:,}",
                *[_money(row[name], currency) for name in amounts],
                _money(row["tolerance"], currency),
                row["status"].replace("_", " "),
            ]
            for row in rows
        ],
        footer=[
            "total",
            "",
            f"{sum(row['charge_count'] for row in rows):,}",
            *[_money(_sum(rows, name), currency) for name in amounts],
            "",
            "",
        ],
    )


def _unmatched_table(currency: str | None, rows: list[Row]) -> None:
    table(
        [
            ("side", "left"),
            ("resource", "left"),
            ("from", "left"),
            ("to", "left"),
            ("GPU-hours", "right"),
            (currency or "no price", "right"),
            ("", "left"),
        ],
        [
            [
                row["side"],
                one_line(row["subject"]),
                *[f"{row[name]:%Y-%m-%d %H:%M}" if row[name] else "-" for name in ("gap_from", "gap_to")],
                f"{Decimal(row['gpu_microseconds']) / 3_600_000_000:,.1f}" if row["gpu_microseconds"] else "-",
                _money(row["amount"], currency) if currency else "-",
                "estimate" if row["is_estimate"] else "",
            ]
            for row in rows
        ],
    )


def _money(amount: Decimal | None, currency: str) -> str:
    return "-" if amount is None else f"{amount:,.{minor_unit_digits(currency)}f}"


def _sum(rows: list[Row], name: str) -> Decimal:
    return sum((row[name] for row in rows if row[name] is not None), Decimal(0))
