"""The command `read`: the canonical rows that a page yields, by the code that the agent runs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collectors.pages import read_token
from collectors.registry import PAGE_COLLECTORS
from collectors.steps import steps
from services.terminal import complain, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.samples import Reading


@click.command()
@click.argument("kind", type=click.Choice(list(PAGE_COLLECTORS)), metavar="KIND")
@click.argument("pages", nargs=-1, required=True, metavar="PAGE...")
@click.option(
    "--token-file",
    metavar="FILE",
    envvar="GPUTALLY_TOKEN_FILE",
    show_envvar=True,
    type=click.Path(path_type=Path),
    help="File with a bearer token for pages that ask for one.",
)
def read(kind: str, pages: tuple[str, ...], token_file: Path | None) -> None:
    """Print the rows that metric pages yield, as JSON lines.

    KIND is the page's exporter: dcgm. PAGE is a file or an http(s) address. One page shows counters as they stand.
    Several, in time order, show the steps between them: what each counter added, which device was lost, which
    Xid is new. A null is a value that the page does not have; what was refused is counted on standard error.
    """
    token = read_token(token_file) if token_file else None
    collector = PAGE_COLLECTORS[kind]
    readings = [collector(page, token=token).collect() for page in pages]
    shown = readings if len(readings) == 1 else steps(readings)
    for reading in shown:
        for row in _rows(reading):
            say(row)
    if refused := _refused(readings if len(readings) == 1 else [readings[0], *shown]):
        complain(f"gputally: refused {refused}")


def _rows(reading: Reading) -> Iterator[str]:
    """Yield one JSON line per device, its events in it."""
    for sample in reading.samples:
        row = asdict(sample)
        # Nobody is named is not nobody holds it: that is for the kubelet or Slurm to say.
        row["owner"] = [_without_none(owner) for owner in row["owner"]] or None
        row["events"] = [
            {"code_space": event.code_space, "code": event.code}
            for event in reading.events
            if sample.uuid is not None and event.uuid == sample.uuid
        ]
        yield json.dumps(row, allow_nan=False)


def _without_none(fields: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value is not None}


def _refused(readings: list[Reading]) -> str:
    counts: Counter[str] = Counter()
    for reading in readings:
        for rejected in reading.rejected:
            counts[rejected.reason] += rejected.count
    if not counts:
        return ""
    told = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
    return f"{counts.total()} value{'' if counts.total() == 1 else 's'}: {told}"
