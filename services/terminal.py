"""What a person sees: progress on a terminal, plain text in a pipe, one line for an error."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from fleet.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@contextmanager
def progress(title: str, steps: int | None) -> Iterator[Callable[[str], None]]:
    """Yield a function that names the step being done. Shown on standard error, only when that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=steps)
        done = -1

        def step(name: str) -> None:
            nonlocal done
            done += 1
            bar.update(task, description=f"{title}: {one_line(name)}", completed=done)

        yield step


def table(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], *, footer: Sequence[str] | None = None
) -> None:
    """Print a table: `columns` are (heading, "left" or "right"). In a pipe it is plain aligned text, never cut."""
    widths = [
        max(len(cells[i]) for cells in [[name for name, _ in columns], *rows, *([footer] if footer else [])])
        for i in range(len(columns))
    ]
    if not sys.stdout.isatty():
        lines = [[name for name, _ in columns], *rows, *([footer] if footer else [])]
        for line in lines:
            cells = [
                c.rjust(w) if side == "right" else c.ljust(w)
                for c, w, (_, side) in zip(line, widths, columns, strict=True)
            ]
            say("  ".join(cells).rstrip())
        return
    shown = Table(show_footer=footer is not None, header_style="bold", footer_style="bold")
    for i, (name, side) in enumerate(columns):
        shown.add_column(
            name,
            footer=footer[i] if footer else "",
            justify="right" if side == "right" else "left",
            no_wrap=True,
        )
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    Console().print(shown)


def say(text: str = "") -> None:
    """Print one line to standard output."""
    sys.stdout.write(text + "\n")


def complain(text: str) -> None:
    """Print one line to standard error."""
    sys.stderr.write(text + "\n")
