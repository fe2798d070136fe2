"""What commands have in common: the workspace option."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from collections.abc import Callable

Command = TypeVar("Command", bound="Callable[..., Any]")

FOLDER = click.Path(path_type=Path, file_okay=False)


def in_workspace(command: Command) -> Command:
    """Let a command take `-C DIR` after its name too, and hand it the workspace folder as first argument."""
    option = click.option(
        "-C",
        "chosen_folder",
        metavar="DIR",
        type=FOLDER,
        expose_value=False,
        callback=_choose,
        help="Workspace: the folder of gputally.toml.",
    )
    return cast("Command", option(click.pass_obj(command)))


def _choose(context: click.Context, _: click.Parameter, folder: Path | None) -> None:
    if folder is not None:
        context.obj = folder
