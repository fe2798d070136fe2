"""`gputally assets`: what owned hardware cost in a month, and what that makes a GPU-hour."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import click

from fleet.errors import one_line
from fleet.money import minor_unit_digits
from services.commands.bill import FORM, print_rows, published_rows
from services.commands.options import in_workspace
from services.commands.period import PERIOD
from services.terminal import table

if TYPE_CHECKING:
    from pathlib import Path

    from chargeback.published import Row

PARTS: Final = ("depreciation", "power_measured", "power_rated", "colo", "support", "staff", "total")
COLUMNS: Final = (
    "cluster", "node", *PARTS, "currency", "gpu_hours", "per_gpu_hour", "target_percent", "per_gpu_hour_at_target",
)  # fmt: skip
_PER_HOUR: Final = Decimal("1e-12")
_HOUR: Final = 3_600_000_000


@click.command()
@click.argument("period", type=PERIOD)
@click.option(
    "--target",
    "target_percent",
    type=click.IntRange(1, 100),
    default=60,
    show_default=True,
    metavar="PERCENT",
    help="Share of the capacity that is meant to be used.",
)
@click.option("--format", "form", type=FORM, default="table", show_default=True)
@in_workspace
def assets(folder: Path, period: str, form: str, target_percent: int) -> None:
    """Print what each owned node cost in the published PERIOD.

    One line per node: depreciation, power (measured, and rated for hours that no meter saw), colo, support and staff;
    and what that makes a GPU-hour, at all the capacity of the inventory and at the share that is meant to be used.
    """
    rows = [_priced(row, target_percent) for row in published_rows(folder, "asset_cost", period)]
    print_rows(rows, COLUMNS, form, _table)


def _priced(row: Row, target_percent: int) -> Row:
    """Add prices of a GPU-hour, rounded to 12 decimals; None for a node without GPU time in the inventory."""
    capacity = Decimal(row["gpu_microseconds"])
    full, target = None, None
    if capacity:
        full = (row["total"] * _HOUR / capacity).quantize(_PER_HOUR)
        target = (row["total"] * _HOUR * 100 / (capacity * target_percent)).quantize(_PER_HOUR)
    return row | {"per_gpu_hour": full, "target_percent": target_percent, "per_gpu_hour_at_target": target}


def _table(currency: str, rows: list[Row]) -> None:
    digits = minor_unit_digits(currency)
    all_of = {name: sum((row[name] for row in rows), Decimal(0)) for name in PARTS}
    all_of["gpu_microseconds"] = Decimal(sum(row["gpu_microseconds"] for row in rows))
    percent = rows[0]["target_percent"]
    table(
        [
            ("node", "left"),
            ("depreciation", "right"),
            ("power", "right"),
            ("colo", "right"),
            ("support", "right"),
            ("staff", "right"),
            (f"total {currency}", "right"),
            ("GPU-hours", "right"),
            ("per GPU-hour", "right"),
            (f"at {percent} %", "right"),
        ],
        [[one_line("/".join(filter(None, (row["cluster"], row["node"])))), *_cells(row, digits)] for row in rows],
        footer=["total", *_cells(_priced(all_of, percent), digits)],
    )


def _cells(row: Row, digits: int) -> list[str]:
    power = row["power_measured"] + row["power_rated"]
    amounts = (row["depreciation"], power, row["colo"], row["support"], row["staff"], row["total"])
    prices = (row["per_gpu_hour"], row["per_gpu_hour_at_target"])
    return [
        *[f"{amount:,.{digits}f}" for amount in amounts],
        f"{Decimal(row['gpu_microseconds']) / _HOUR:,.1f}",
        *["-" if price is None else f"{price:,.6f}" for price in prices],
    ]
