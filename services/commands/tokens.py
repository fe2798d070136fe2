"""The command `gputally tokens`: what a token of a shared model server cost."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import click

from chargeback.api_prices import read_api_prices, with_api_amounts
from chargeback.token_coverage import Span, token_coverage
from chargeback.token_price import token_prices
from fleet.errors import one_line
from fleet.money import minor_unit_digits
from services.commands.coverage import print_coverage
from services.commands.exact_rows import csv_bytes, plain_row
from services.commands.options import in_workspace
from services.commands.period import PERIOD
from services.commands.waste import print_waste
from services.terminal import say, table
from services.workspace import Workspace

if TYPE_CHECKING:
    from chargeback.published import Row

COLUMNS: Final = (
    "server", "kind", "model", "tenant", "team", "uncached_input_tokens", "cached_input_tokens", "output_tokens",
    "requests", "gpu_hours", "amount", "input_price_per_million", "cached_input_price_per_million",
    "output_price_per_million", "price_per_request", "api_amount", "currency",
)  # fmt: skip
SHOWN_EXTRA_DIGITS = 2
"""A price of tokens is shown with two decimals more than the currency has."""


@click.command()
@click.argument("period", type=PERIOD)
@click.option("--team", metavar="T", help="Only this team's lines.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option(
    "--api-prices",
    "price_file",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Price list of an API (model, input_per_million, cached_per_million, output_per_million, currency): "
    "also shows what the same tokens would cost there.",
)
@click.option("--waste", is_flag=True, help="Instead: as `gputally waste`.")
@click.option("--coverage", is_flag=True, help="Instead: how much of the engines' tokens the gateways explain.")
@click.option("--by", "span", type=click.Choice(get_args(Span)), help="Coverage per hour, day (default) or period.")
@click.option("--server", metavar="S", help="Only this server.")
@in_workspace
def tokens(
    folder: Path, period: str, team: str | None, form: str, price_file: Path | None, span: Span | None,
    server: str | None, *, waste: bool, coverage: bool,
) -> None:  # fmt: skip
    """Print what the tokens of shared model servers cost in the published PERIOD.

    One line per server, model and tenant; hours in which a server was idle, and tokens that no tenant answers for, are
    lines of their own and in nobody's price.

    With --coverage, one line per server and hour, day or period: tokens that gateways reported over those that the
    engines counted. What is missing stays unattributed and is never scaled away; a gap of more than 5 %, or a negative
    one, is flagged.
    """
    _refuse_mixed(price_file, span, team, waste=waste, coverage=coverage)
    if waste:
        print_waste(folder, period, team, server, form)
        return
    workspace = Workspace.at(folder)
    with workspace.open_lake(read_only=True) as lake:
        if coverage:
            zone = workspace.config.ledger.time_zone
            rows = token_coverage(lake.connection, period, zone=zone, span=span or "day", server=server)
            print_coverage(rows, form)
            return
        rows = token_prices(lake.connection, period, team, server)
        prices = read_api_prices(lake.connection, price_file) if price_file else {}
    rows = with_api_amounts(rows, prices)
    if form == "table":
        _print_table(rows, with_api=price_file is not None)
    elif form == "json":
        say(json.dumps([plain_row(row, COLUMNS) for row in rows], indent=2))
    else:
        sys.stdout.buffer.write(csv_bytes(rows, COLUMNS))


def _refuse_mixed(price_file: Path | None, span: Span | None, team: str | None, *, waste: bool, coverage: bool) -> None:
    if waste and coverage:
        raise click.UsageError("--waste and --coverage are two questions: ask one")
    if price_file and (waste or coverage):
        raise click.UsageError("--waste and --coverage have no tokens to price: leave out --api-prices")
    if coverage and team is not None:
        raise click.UsageError("--coverage is of servers, whoever uses them: leave out --team")
    if span and not coverage:
        raise click.UsageError("--by is for --coverage")


def _print_table(rows: list[Row], *, with_api: bool) -> None:
    for currency in dict.fromkeys(row["currency"] for row in rows):
        of_currency = [row for row in rows if row["currency"] == currency]
        digits = minor_unit_digits(currency)
        total = sum((row["amount"] for row in of_currency), Decimal(0))
        table(
            [
                ("server", "left"),
                ("model", "left"),
                ("tenant", "left"),
                ("team", "left"),
                ("input", "right"),
                ("cached", "right"),
                ("output", "right"),
                ("requests", "right"),
                (currency, "right"),
                ("per M input", "right"),
                ("per M cached", "right"),
                ("per M output", "right"),
                ("per request", "right"),
                *([("at the API", "right")] if with_api else []),
            ],
            [_cells(row, digits, with_api=with_api) for row in of_currency],
            footer=["total", *[""] * 7, f"{total:,.{digits}f}", *[""] * (5 if with_api else 4)],
        )


def _cells(row: Row, digits: int, *, with_api: bool) -> list[str]:
    def price(name: str, extra: int = SHOWN_EXTRA_DIGITS) -> str:
        return "-" if row[name] is None else f"{row[name]:,.{digits + extra}f}"

    def count(name: str) -> str:
        return "-" if row[name] is None else f"{row[name]:,}"

    return [
        one_line(row["server"]),
        one_line(row["model"] or "-"),
        one_line(_who(row)),
        one_line(row["team"] or "-"),
        count("uncached_input_tokens"),
        count("cached_input_tokens"),
        count("output_tokens"),
        count("requests"),
        f"{row['amount']:,.{digits}f}",
        price("input_price_per_million"),
        price("cached_input_price_per_million"),
        price("output_price_per_million"),
        price("price_per_request"),
        *([price("api_amount", 0)] if with_api else []),
    ]


def _who(row: Row) -> str:
    """A tenant's name, or what the line is instead; brackets keep the two apart."""
    if row["kind"] == "tenant":
        return row["tenant"] or "(no tenant)"
    named = f" of {row['tenant']}" if row["tenant"] else ""
    return f"({row['kind']}{named})"
