"""The command `gputally sync`: fetch bills, commitments, invoices and prices from their providers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chargeback.sources.intake import Verdict
from fleet.errors import GputallyError, SourceError, one_line
from services.commands.options import in_workspace
from services.commands.period import PERIOD
from services.explaining_charges import flag_lines
from services.syncing import CACHE, chosen, sync_source
from services.terminal import complain, progress, say
from services.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.sources_config import Source
    from services.syncing import Outcome
    from store.lake import Lake


@click.command()
@click.argument("names", nargs=-1, metavar="[SOURCE]...")
@click.option("--period", type=PERIOD, metavar="YYYY-MM", help="Bills and invoices of this month only.")
@in_workspace
def sync(folder: Path, names: tuple[str, ...], period: str | None) -> None:
    """Fetch what the sources of gputally.toml offer, and load it.

    All of them, or those named. A source that fails is told in one line and the others are still synced; the exit code
    is then 1. What was fetched is kept in the workspace's cache, so a run that was stopped goes on from there.
    """
    workspace = Workspace.at(folder)
    sources = chosen(workspace.config.sources, names)
    with workspace.open_lake() as lake:
        # Each is synced whatever became of the others.
        done = [_sync(lake, source, workspace.folder / CACHE / source.name, period) for source in sources]
    if not all(done):
        raise SystemExit(1)


def _sync(lake: Lake, source: Source, cache: Path, period: str | None) -> bool:
    """Sync one source and say what came of it; whether all of it went well."""
    outcomes: list[Outcome] = []
    with progress(f"sync {source.name}", None) as step:
        try:
            outcomes.extend(sync_source(lake, source, cache, period, step))
        except GputallyError as error:
            outcomes.append(error)
        except OSError as error:
            # A full disk, or a folder that may not be written.
            outcomes.append(SourceError(error.strerror or str(error)))
    for outcome in outcomes:
        if isinstance(outcome, GputallyError):
            complain(f"gputally: {source.name}: {outcome}")
            continue
        loaded = outcome.loaded if isinstance(outcome, Verdict) else outcome
        say(f"{source.name}: {one_line(loaded.source)}: {loaded.row_count:,} rows, {loaded.outcome}")
        for line in flag_lines(outcome) if isinstance(outcome, Verdict) else ():
            say(f"{source.name}: {line}")
    return not any(isinstance(outcome, GputallyError) for outcome in outcomes)
