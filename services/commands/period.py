"""Commands on a period: build, check, statement, explain, export."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from chargeback.build import build_period, step_count
from chargeback.checking import check_period
from chargeback.explain import explain as explain_team
from chargeback.finance_csv import csv_bytes, export_period, gpu_hours
from chargeback.published import Row, published_build, statement_rows
from chargeback.reporting import reported_rows
from fleet.errors import CheckError, NotBuiltError, one_line
from fleet.identity import CATEGORIES
from fleet.money import format_money, format_plain, minor_unit_digits
from fleet.period import month
from services.commands.options import FOLDER, in_workspace
from services.commands.reported import print_reported
from services.explaining import explanation_lines
from services.terminal import progress, say, table
from services.workspace import Workspace
from store.snapshots import show_current

if TYPE_CHECKING:
    from pathlib import Path

    from store.lake import Connection


class PeriodType(click.ParamType[str]):
    """A calendar month written YYYY-MM."""

    name = "period"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text unchanged if it is a month."""
        try:
            month(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


PERIOD = PeriodType()


@click.command()
@click.argument("period", type=PERIOD)
@in_workspace
def build(folder: Path, period: str) -> None:
    """Build PERIOD (YYYY-MM): facts, ledger and statement, checked and published in one commit."""
    workspace = Workspace.at(folder)
    with workspace.open_lake() as lake, progress(f"build {period}", step_count()) as step:
        _need_charges(lake.connection, period)
        built = build_period(lake, workspace.config, period, progress=step)
        rows = statement_rows(lake.connection, period)
    state = "published" if built.is_new else "unchanged since it was published"
    totals = ", ".join(format_money(total, currency) for currency, total in _totals(rows).items())
    teams = len({row["team"] for row in rows})
    say(f"{period} v{built.version} (build {built.build_id}) {state}: {teams} teams, {totals or 'nothing'}")


@click.command()
@click.argument("period", type=PERIOD)
@click.option(
    "--strict",
    is_flag=True,
    help="Also fail on gaps (unpriced, unmatched, unmapped) and on a build older than its inputs.",
)
@in_workspace
def check(folder: Path, period: str, *, strict: bool) -> None:
    """Check the published PERIOD against its inputs and every invariant; silent and 0 when well."""
    workspace = Workspace.at(folder)
    with workspace.open_lake(read_only=True) as lake, progress(f"check {period}", step_count()) as step:
        failures = check_period(lake.connection, workspace.config, period, strict=strict, progress=step)
    if failures:
        raise CheckError(failures)


@click.command()
@click.argument("period", type=PERIOD)
@click.option("--team", metavar="T", help="Only this team's lines.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option(
    "--currency",
    metavar="CODE",
    help="Every line in this reporting currency, at the period's rates; the booked amount stands beside it.",
)
@in_workspace
def statement(folder: Path, period: str, team: str | None, form: str, currency: str | None) -> None:
    """Print the published statement of PERIOD."""
    workspace = Workspace.at(folder)
    if currency:
        with workspace.open_lake(read_only=True) as lake:
            print_reported(reported_rows(lake.connection, period, currency, team), form)
        return
    with workspace.open_lake(read_only=True) as lake:
        if form == "csv":
            sys.stdout.buffer.write(csv_bytes(lake.connection, period, team))
            return
        rows = statement_rows(lake.connection, period, team)
    if form == "json":
        say(json.dumps([_as_json(row) for row in rows], indent=2))
        return
    _print_statement(rows)


@click.command()
@click.argument("period", type=PERIOD)
@click.option("--team", required=True, metavar="T")
@click.option("--category", type=click.Choice(CATEGORIES), help="Only this category.")
@click.option(
    "--charges",
    "charge_count",
    default=5,
    show_default=True,
    metavar="N",
    help="How many invoice lines to list.",
)
@in_workspace
def explain(folder: Path, period: str, team: str, category: str | None, charge_count: int) -> None:
    """Walk a team's lines of PERIOD back to the invoice lines that they came from."""
    workspace = Workspace.at(folder)
    with workspace.open_lake(read_only=True) as lake:
        found = explain_team(lake.connection, period, team, category)
    for line in explanation_lines(found, period, team, charge_count):
        say(line)


@click.command()
@click.argument("period", type=PERIOD)
@click.option("--out", required=True, metavar="DIR", type=FOLDER)
@in_workspace
def export(folder: Path, period: str, out: Path) -> None:
    """Write chargeback-PERIOD.csv and control-PERIOD.json for finance."""
    workspace = Workspace.at(folder)
    with workspace.open_lake(read_only=True) as lake:
        published_build(lake.connection, period)
        for path in export_period(lake.connection, period, out):
            say(str(path))


def _need_charges(con: Connection, period: str) -> None:
    """Refuse a month that nobody was billed for; one that was published before may have become empty since."""
    show_current(con)
    span = month(period)
    query = """
        SELECT 1 FROM charge WHERE billing_period_start >= $start AND billing_period_start < $end
        UNION ALL SELECT 1 FROM lake.build WHERE period = $period
    """
    if not con.execute(query, {"start": span.start, "end": span.end, "period": period}).fetchone():
        raise NotBuiltError(f"no charge of {period} is loaded, nothing to build: run `gputally load charges FILE...`")


def _print_statement(rows: list[Row]) -> None:
    for currency, total in _totals(rows).items():
        of_currency = [row for row in rows if row["currency"] == currency]
        cells = [
            [
                one_line(row["team"]),
                one_line(row["cost_centre"] or "-"),
                row["category"],
                one_line(row["pool"]),
                row["gpu_model"] or "-",
                f"{Decimal(row['gpu_microseconds']) / 3_600_000_000:,.1f}",
                f"{row['amount']:,.{minor_unit_digits(currency)}f}",
                row["policy"],
            ]
            for row in of_currency
        ]
        hours = sum(Decimal(row["gpu_microseconds"]) for row in of_currency) / 3_600_000_000
        table(
            [
                ("team", "left"),
                ("cost centre", "left"),
                ("category", "left"),
                ("pool", "left"),
                ("model", "left"),
                ("GPU-hours", "right"),
                (currency, "right"),
                ("policy", "left"),
            ],
            cells,
            footer=[
                "total",
                "",
                "",
                "",
                "",
                f"{hours:,.1f}",
                f"{total:,.{minor_unit_digits(currency)}f}",
                "",
            ],
        )


def _totals(rows: list[Row]) -> dict[str, Decimal]:
    totals: dict[str, Decimal] = {}
    for row in rows:
        totals[row["currency"]] = totals.get(row["currency"], Decimal(0)) + row["amount"]
    return dict(sorted(totals.items()))


def _as_json(row: Row) -> dict[str, Any]:
    """Amounts as text: JSON numbers are floats to most readers."""
    kept = {name: value for name, value in row.items() if name not in ("gpu_microseconds", "exact_amount")}
    return kept | {
        "gpu_hours": gpu_hours(row["gpu_microseconds"]),
        "amount": format_plain(row["amount"], minor_unit_digits(row["currency"])),
    }
