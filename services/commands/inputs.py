"""Commands that set a workspace up and fill it: init, load, doctor."""

from __future__ import annotations

from pathlib import Path

import click

from chargeback.kinds import KINDS
from chargeback.load import LoadOptions, load_files
from fleet.config import CONFIG_FILE
from fleet.errors import ConfigError, InputError, one_line
from fleet.period import zone_named
from services.agent.doctor import examine_node
from services.commands.options import FOLDER, in_workspace
from services.doctor import examine
from services.finding import has_failed, lines
from services.terminal import complain, progress, say
from services.workspace import Workspace, create


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
def init(folder: Path) -> None:
    """Make a workspace: DIR with a commented gputally.toml."""
    path = create(folder)
    say(f"{path}: edit it, then load files, for example: gputally -C {folder} load inventory nodes.csv")


@click.command()
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@click.option(
    "--provider",
    type=click.Choice(["focus"]),
    default="focus",
    show_default=True,
    help="Dialect of a charges file.",
)
@click.option("--time-zone", metavar="ZONE", help="IANA zone of times that carry none; without it they are refused.")
@click.option(
    "--ignore-column",
    "ignored",
    multiple=True,
    metavar="NAME",
    help="Leave out a column the format does not know.",
)
@click.option("--all-problems", is_flag=True, help="List every problem of a refused file, one a line.")
@in_workspace
def load(
    folder: Path,
    kind: str,
    files: tuple[Path, ...],
    provider: str,
    time_zone: str | None,
    ignored: tuple[str, ...],
    *,
    all_problems: bool,
) -> None:
    """Load input files (CSV or Parquet): all of them or none.

    KIND is inventory, devices, holdings, demand, charges, invoices, quotas or teams.

    A file replaces what an earlier file of the same name said. Content that is already loaded is left alone.
    """
    workspace = Workspace.at(folder)
    if time_zone:
        _check_zone(time_zone)
    options = LoadOptions(provider, time_zone, ignored)
    with workspace.open_lake() as lake, progress(f"load {kind}", len(files)) as step:
        try:
            loaded = load_files(lake, kind, files, options, progress=step)
        except InputError as error:
            for problem in error.problems[:-1] if all_problems else ():
                complain(f"gputally: {problem}")
            if all_problems:
                raise InputError([error.problems[-1]]) from error
            raise
    for result in loaded:
        elsewhere = f" as {one_line(result.same_as)}" if result.same_as not in (None, result.source) else ""
        note = f"already loaded{elsewhere}, nothing to do" if result.outcome == "unchanged" else result.outcome
        say(f"{one_line(result.source)}: {result.row_count:,} rows, {note}")


@click.command()
@click.option("--node", "with_node", is_flag=True, help="Look at this GPU node too, as its agent would see it.")
@in_workspace
def doctor(folder: Path, *, with_node: bool) -> None:
    """Examine the installation and the workspace; exit 1 if something must be mended."""
    findings = examine(folder)
    if with_node:
        findings += examine_node(folder / CONFIG_FILE)
    for line in lines(findings):
        say(line)
    if has_failed(findings):
        raise SystemExit(1)


def _check_zone(name: str) -> None:
    try:
        zone_named(name)
    except ValueError as error:
        raise ConfigError(f"--time-zone: {error}") from None
