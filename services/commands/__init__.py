"""The commands of `gputally`, one module per group of tasks; each function is one command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from services.commands.bill import prepaid, reconcile
from services.commands.demo import demo, portal
from services.commands.hub import hub, maintain
from services.commands.inputs import doctor, init, load
from services.commands.options import FOLDER
from services.commands.owned import assets
from services.commands.period import build, check, explain, export, statement
from services.commands.read import read
from services.commands.sync import sync
from services.commands.tokens import tokens
from services.commands.waste import waste

if TYPE_CHECKING:
    from pathlib import Path


_COMMANDS = (
    init, load, sync, build, check, statement, explain, export, prepaid, reconcile, assets, tokens, waste, read, portal,
    hub, maintain, doctor, demo,
)  # fmt: skip


@click.group(
    commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "-C",
    "folder",
    default=".",
    show_default=True,
    metavar="DIR",
    type=FOLDER,
    help="Workspace: the folder of gputally.toml.",
)
@click.version_option(package_name="gputally", message="%(prog)s %(version)s")
@click.pass_context
def gputally(context: click.Context, folder: Path) -> None:
    """Cost accounting for GPU fleets: every dollar of the invoice lands on a team, with proof."""
    context.obj = folder
