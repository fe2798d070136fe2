"""The command `read`: the canonical rows that a source yields, by the code that the agent runs."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from collectors.exposition import PageError
from collectors.kernel_log.collector import KernelLog
from collectors.nvml.collector import Nvml
from collectors.pages import read_token
from collectors.registry import PAGE_COLLECTORS
from collectors.serving.servers import SERVER_KINDS, server_of
from collectors.steps import steps
from services.terminal import complain, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.samples import Reading
    from collectors.serving.collector import Visit
    from collectors.serving.gateway import GatewayReading, GatewayVisit
    from collectors.serving.samples import ServingReading

NVML: Final = "nvml"
KERNEL_LOG: Final = "kernel-log"
VISIT_SECONDS: Final = 1.0


@click.command()
@click.argument("kind", type=click.Choice([*PAGE_COLLECTORS, NVML, KERNEL_LOG, *SERVER_KINDS]), metavar="KIND")
@click.argument("pages", nargs=-1, metavar="[PAGE...]")
@click.option(
    "--token-file",
    metavar="FILE",
    envvar="GPUTALLY_TOKEN_FILE",
    show_envvar=True,
    type=click.Path(path_type=Path),
    help="File with a bearer token for pages that ask for one.",
)
@click.option(
    "--visits",
    metavar="N",
    type=click.IntRange(1, 86_400),
    default=1,
    show_default=True,
    help="With nvml: how often to look, once a second.",
)
def read(kind: str, pages: tuple[str, ...], token_file: Path | None, visits: int) -> None:
    """Print the rows that metric pages, a driver or a log yield, as JSON lines.

    KIND dcgm: each PAGE is a page of dcgm-exporter, a file or an http(s) address. One page shows counters as they
    stand. Several, in time order, show the steps between them: what each counter added, which device was lost, which
    Xid is new. A null is a value that the page does not have; what was refused is counted on standard error.

    KIND nvml: the devices of this machine, as its NVIDIA driver shows them. No PAGE is given.

    KIND kernel-log: each PAGE is a log of the kernel (a text file, or /dev/kmsg); one line for each fault in it.

    KIND vllm, sglang, ...: each PAGE is a metric page of one model server (or gateway) of that kind. One line for
    each model and engine index (or tenant); one page shows counters as they stand, several, in time order, the steps
    between them. The first page names the server in all rows.
    """
    refused: Counter[str] = Counter()
    if kind == NVML:
        if pages:
            raise click.UsageError("nvml asks the driver of this machine and takes no PAGE.")
        _read_nvml(visits, refused)
    elif not pages:
        raise click.MissingParameter(param_hint="'PAGE...'", param_type="argument")
    elif kind == KERNEL_LOG:
        for page in pages:
            _read_log(Path(page), refused)
    elif kind in SERVER_KINDS:
        _read_server(kind, pages, token_file, refused)
    else:
        _read_pages(kind, pages, token_file, refused)
    if refused:
        told = ", ".join(f"{reason} {count}" for reason, count in sorted(refused.items()))
        complain(f"gputally: refused {refused.total()} value{'' if refused.total() == 1 else 's'}: {told}")


def _read_pages(kind: str, pages: tuple[str, ...], token_file: Path | None, refused: Counter[str]) -> None:
    token = read_token(token_file) if token_file else None
    collector = PAGE_COLLECTORS[kind]
    readings = [collector(page, token=token).collect() for page in pages]
    shown = readings if len(readings) == 1 else steps(readings)
    for reading in shown:
        for row in _rows(reading):
            say(row)
    for reading in readings if len(readings) == 1 else [readings[0], *shown]:
        _count(refused, reading)


def _read_server(kind: str, pages: tuple[str, ...], token_file: Path | None, refused: Counter[str]) -> None:
    """Print the rows of one server; all its pages are read before the first row is shown.

    Where reading takes away what a page shows, its first visit is a step already: what was read before a page that
    cannot be is shown nevertheless, as nobody can read it again.
    """
    token = read_token(token_file) if token_file else None
    server = server_of(kind, pages[0], token=token)
    visits: list[Visit | GatewayVisit] = []
    failure: PageError | None = None
    for page in pages:
        try:
            visits.append(server.collect(page))
        except PageError as error:
            if not visits or visits[0].step is None:
                raise
            failure = error
            break
    shown = [visit.step for visit in visits if visit.step is not None] or [visits[0].totals]
    for reading in shown:
        for sample in reading.samples:
            say(json.dumps(asdict(sample), allow_nan=False))
    for visit in visits:
        _count(refused, visit.totals if visit.step is None else visit.step)
    if failure:
        raise failure


def _read_nvml(visits: int, refused: Counter[str]) -> None:
    """Look once more than asked: activity is what happened between two looks."""
    nvml = Nvml()
    try:
        nvml.collect()
        for _ in range(visits):
            time.sleep(VISIT_SECONDS)
            reading = nvml.collect()
            for row in _rows(reading):
                say(row)
            _count(refused, reading)
    finally:
        nvml.close()


def _read_log(path: Path, refused: Counter[str]) -> None:
    """Print the faults in a log from its beginning; the times of the kernel's own ring are those of this boot."""
    log = KernelLog(path, since_boot=True, is_live=path.is_char_device())
    try:
        is_first = True
        while is_first or log.is_behind:
            is_first = False
            reading = log.collect()
            for event in reading.events:
                say(json.dumps(asdict(event), allow_nan=False))
            _count(refused, reading)
    finally:
        log.close()


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


def _count(refused: Counter[str], reading: Reading | ServingReading | GatewayReading) -> None:
    for rejected in reading.rejected:
        refused[rejected.reason] += rejected.count
