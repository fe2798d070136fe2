"""Commands of the fleet's server: hub and maintain."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Final

import click

from fleet.errors import LakeError, MissingDependencyError
from fleet.log import setup
from services.commands.options import in_workspace
from services.terminal import say
from services.workspace import Workspace
from store import maintenance

if TYPE_CHECKING:
    from pathlib import Path

FILES_KEPT: Final = 0.8
"""Part of the pause between two rounds for which files that are no longer needed are left to readers."""
LOG = logging.getLogger("gputally.maintain")


@click.command()
@in_workspace
def hub(folder: Path) -> None:
    """Receive telemetry from node agents and commit it to the lake, until told to stop."""
    # gRPC's own log would tell of every stranger that fails a handshake; it is set before gRPC is loaded.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        from services.hub.server import run_hub
        from services.hub.settings import hub_settings
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"the hub needs {error.name}: install gputally[hub]") from None
    workspace = Workspace.at(folder)
    settings = hub_settings(folder, workspace.config.hub)
    setup()
    if status := run_hub(settings, workspace.open_lake):
        sys.exit(status)


@click.command()
@click.option("--once", is_flag=True, help="Run one round and end.")
@in_workspace
def maintain(folder: Path, *, once: bool) -> None:
    """Keep the lake small: merge its files, forget old history and old windows.

    Safe beside a running hub. What published months were computed from is kept.
    """
    workspace = Workspace.at(folder)
    if once:
        say(str(_round(workspace)))
        return
    setup()
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    LOG.info("maintaining", extra={"minutes": workspace.config.hub.maintain_minutes})
    while not told.is_set():
        try:
            LOG.info("round done", extra={"did": _round(workspace)})
        except LakeError as error:
            LOG.warning("round failed, the next one tries again", extra={"error": error})
        told.wait(workspace.config.hub.maintain_minutes * 60)


def _round(workspace: Workspace) -> maintenance.Maintained:
    kept = workspace.config.hub
    with workspace.open_lake() as lake:
        return maintenance.maintain(
            lake,
            retention_days=kept.retention_days,
            snapshot_hours=kept.snapshot_hours,
            file_seconds=FILES_KEPT * kept.maintain_minutes * 60,
        )
