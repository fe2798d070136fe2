"""Recorded and written pages of model servers, read as the agent reads them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

from collectors.serving.collector import EngineServer
from collectors.serving.engines import ENGINES

if TYPE_CHECKING:
    from collectors.serving.collector import Visit
    from collectors.serving.samples import EngineSample, ServingReading

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "serving"
SECOND = 1_000_000_000


def recorded(kind: str, name: str) -> ServingReading:
    """The rows of a recorded page, counters as they stand."""
    body = (FIXTURES / kind / name).read_bytes()
    text = (gzip.decompress(body) if name.endswith(".gz") else body).decode()
    return EngineServer(ENGINES[kind], server="server").read(text, name).totals


def totals(kind: str, *lines: str, version: str | None = None) -> ServingReading:
    """The rows of a page of these lines."""
    return EngineServer(ENGINES[kind], version=version).read("\n".join(lines) + "\n").totals


def walk(kind: str, *pages: str | tuple[float, str], version: str | None = None) -> list[ServingReading]:
    """The steps between pages of one server; a page may come with the second at which it was read."""
    server = EngineServer(ENGINES[kind], version=version)
    visits: list[Visit] = []
    for page in pages:
        second, text = page if isinstance(page, tuple) else (None, page)
        visits.append(server.read(text + "\n", read_at_ns=None if second is None else round(second * SECOND)))
    return [visit.step for visit in visits[1:] if visit.step]


def run(name: str) -> list[tuple[float, str]]:
    """The pages of a recorded run with the second of each, in time order."""
    text = gzip.decompress((FIXTURES / "vllm" / f"run-{name}.txt.gz").read_bytes()).decode()
    pages = (page.partition("\n") for page in text.split("# page ")[1:])
    return [(float(second), body) for second, _, body in pages]


def only(reading: ServingReading) -> EngineSample:
    """The single row of a reading."""
    (sample,) = reading.samples
    return sample


def counts(reading: ServingReading) -> dict[str, int]:
    """What was refused, by reason."""
    return {rejected.reason: rejected.count for rejected in reading.rejected}


def summed(steps: list[ServingReading], name: str) -> int:
    """A counter over all rows of all steps; what is unknown adds nothing."""
    return sum(getattr(row, name) or 0 for step in steps for row in step.samples)
