"""Commands that show something: demo and portal."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import click

from chargeback.build import build_period, step_count
from chargeback.checking import check_period
from chargeback.finance_csv import export_period
from chargeback.published import Row, read
from fleet.errors import CheckError, MissingDependencyError
from fleet.money import format_money
from services import demo as demo_month
from services.commands.options import FOLDER, in_workspace
from services.terminal import progress, say, table
from services.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.config import Policy

MICROSECONDS_PER_HOUR = 3_600_000_000
SERVER_PARTS = ("amount", "serving_amount", "idle_amount", "unattributed_amount")
PARTS = ("held_amount", "serving_amount", "idle_amount", "other_amount", "total_amount")


@click.command()
@click.option(
    "--dir",
    "-C",
    "demo_folder",
    default="demo-workspace",
    show_default=True,
    metavar="DIR",
    type=FOLDER,
)
@click.option(
    "--idle-policy",
    type=click.Choice(["proportional", "even", "quota", "central"]),
    help="Who pays for idle GPUs in a new demo workspace.",
)
@click.option("--serve/--no-serve", default=True, show_default=True, help="Serve the portal afterwards.")
def demo(demo_folder: Path, idle_policy: Policy | None, *, serve: bool) -> None:
    """Load, build, check and export the bundled real month, then serve the portal."""
    period = demo_month.PERIOD
    with progress("demo", demo_month.step_count()) as step:
        workspace = demo_month.prepare_demo(demo_folder, idle_policy=idle_policy, progress=step)
    with workspace.open_lake() as lake:
        with progress(f"build {period}", step_count()) as step:
            build_period(lake, workspace.config, period, progress=step)
        with progress(f"check {period}", step_count()) as step:
            failures = check_period(lake.connection, workspace.config, period, strict=False, progress=step)
        if failures:
            raise CheckError(failures)
        written = export_period(lake.connection, period, demo_folder / "finance")
        _summarise(
            read(lake.connection, "summary_team", period),
            read(lake.connection, "summary_fleet", period),
            workspace,
        )
        _summarise_servers(read(lake.connection, "server_total", period))
    say()
    for path in written:
        say(f"wrote {path}")
    if serve:
        _serve(workspace, None, None)


@click.command()
@click.option("--host", help="Address to listen on; default from gputally.toml.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port; default from gputally.toml.")
@in_workspace
def portal(folder: Path, host: str | None, port: int | None) -> None:
    """Serve the portal of the workspace."""
    _serve(Workspace.at(folder), host, port)


def _serve(workspace: Workspace, host: str | None, port: int | None) -> None:
    try:
        from services.portal import serve
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"the portal needs {error.name}: install gputally[portal]") from None
    at = f"{host or workspace.config.portal.host}:{port or workspace.config.portal.port}"
    say(f"\nportal: http://{at}  (Ctrl-C stops it)")
    serve(workspace.folder, workspace.config, host=host, port=port)


def _summarise(teams: list[Row], fleet: list[Row], workspace: Workspace) -> None:
    totals = fleet[0]
    currency = totals["currency"]
    hours = {
        name: Decimal(totals[f"{name}_gpu_microseconds"]) / MICROSECONDS_PER_HOUR
        for name in ("capacity", "held", "pending", "pending_while_idle")
    }
    invoice, statements = (format_money(totals[name], currency) for name in ("invoice_total", "statement_total"))
    say(
        f"Two real traces, composed: {totals['nodes']} nodes and 16 teams of Helios Earth, May 2020, and the clients "
        "of two language models of ServeGen."
    )
    say("Real: holdings, quotas, queue; two weeks of tokens. Not published: utilisation, so no GPU is called used.")
    say(
        "Composed: that the models ran on 96 of the GPUs that vc6YE and vcpDC held, from 18 to 31 May. Not real: "
        "prices, the clients' teams apps-a, apps-b and apps-c, and platform."
    )
    say(f"invoice {invoice}, sum of statements {statements}")
    held, capacity = hours["held"], hours["capacity"]
    say(f"{capacity:,.1f} GPU-hours paid, {held:,.1f} held ({held / capacity:.1%}), {capacity - held:,.1f} idle")
    say(
        f"{hours['pending']:,.1f} GPU-hours waited in the queue, {hours['pending_while_idle']:,.1f} of them while "
        "other quotas sat idle"
    )
    say()
    rows = [
        [
            row["team"],
            f"{Decimal(row['held_gpu_microseconds']) / MICROSECONDS_PER_HOUR:,.1f}",
            *(f"{row[name]:,.2f}" for name in PARTS),
        ]
        for row in teams
    ]
    footer = [
        "total",
        f"{Decimal(sum(row['held_gpu_microseconds'] for row in teams)) / MICROSECONDS_PER_HOUR:,.1f}",
        *(f"{sum(row[name] for row in teams):,.2f}" for name in PARTS),
    ]
    idle_heading = f"idle share, {workspace.config.policy('idle')}"
    table(
        [
            ("team", "left"),
            ("held GPU-hours", "right"),
            (f"held, {currency}", "right"),
            ("model servers", "right"),
            (idle_heading, "right"),
            ("unattributed", "right"),
            (f"total, {currency}", "right"),
        ],
        rows,
        footer=footer,
    )


def _summarise_servers(servers: list[Row]) -> None:
    """Say what each model server cost, who pays for it and what a million tokens came to."""
    say()
    if not servers:
        say("No model server: this workspace was made by an older version. Remove the folder and run the demo again.")
        return
    table(
        [
            ("model server", "left"),
            ("held GPU-hours", "right"),
            ("tenants", "right"),
            (f"cost, {servers[0]['currency']}", "right"),
            ("paid by tenants", "right"),
            ("idle, paid by owner", "right"),
            ("unattributed", "right"),
            ("per M input", "right"),
            ("per M output", "right"),
        ],
        [
            [
                row["server"],
                f"{Decimal(row['gpu_microseconds']) / MICROSECONDS_PER_HOUR:,.1f}",
                f"{row['tenant_count']:,}",
                *(f"{row[name]:,.2f}" for name in SERVER_PARTS),
                *(f"{row[f'{kind}_price_per_million']:,.4f}" for kind in ("input", "output")),
            ]
            for row in servers
        ],
        footer=[
            "total",
            f"{Decimal(sum(row['gpu_microseconds'] for row in servers)) / MICROSECONDS_PER_HOUR:,.1f}",
            f"{sum(row['tenant_count'] for row in servers):,}",
            *(f"{sum(row[name] for row in servers):,.2f}" for name in SERVER_PARTS),
            "",
            "",
        ],
    )
    say("Unattributed: requests of clients whose tokens ServeGen does not tell; platform pays for them.")
