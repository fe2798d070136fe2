"""Recorded pages of every engine and gateway but vLLM and SGLang, and the kind that each is read as."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from collectors.serving.gateway import GatewayServer
from collectors.serving.servers import server_of
from tests.collectors.serving.engine_pages import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from collectors.serving.gateway import GatewayReading
    from collectors.serving.samples import ServingReading

FOLDERS = (
    "dynamo", "envoy_ai_gateway", "inference_extension", "kserve", "litellm", "llamacpp", "lmdeploy", "nim",
    "ray_serve", "tgi", "torchserve", "triton", "trtllm",
)  # fmt: skip
PAGES = sorted(path for folder in FOLDERS for path in (FIXTURES / folder).iterdir())


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def page_of(name: str) -> str:
    """The text of a recorded page, by its place below the fixtures."""
    return text_of(FIXTURES / name)


def kind_of(path: Path) -> str:
    if path.suffix == ".json":
        return "trtllm_json"
    return "mlserver" if "mlserver" in path.name else path.parent.name


def read(kind: str, text: str) -> ServingReading | GatewayReading:
    """The rows of a page, counters as they stand."""
    return server_of(kind, "http://server:8000/metrics").read(text).totals


def rows(kind: str, text: str) -> list[dict[str, Any]]:
    """The rows of a page without what is unknown."""
    found = [asdict(sample) for sample in read(kind, text).samples]
    return [{name: value for name, value in row.items() if value not in (None, (), {})} for row in found]


def row(kind: str, text: str, **where: object) -> dict[str, Any]:
    """The one row of a page that has these values."""
    (found,) = [one for one in rows(kind, text) if all(one.get(name) == value for name, value in where.items())]
    return found


def json_lines(reading: ServingReading | GatewayReading) -> str:
    """Rows as the command prints them, and what was refused, missing or left out."""
    lines = [json.dumps(asdict(sample), allow_nan=False) for sample in reading.samples]
    about = {name: value for name, value in asdict(reading).items() if name != "samples"}
    if not about.get("passed_on"):
        about.pop("passed_on", None)  # of Triton's ensembles only
    return "".join(f"{line}\n" for line in [*lines, json.dumps(about)])


def gateway_steps(kind: str, *pages: tuple[float, str], **options: str) -> list[GatewayReading]:
    """The steps between pages of one gateway, each with the second at which it was read."""
    server = server_of(kind, "http://gateway:4000/metrics", **options)
    assert isinstance(server, GatewayServer)
    visits = [server.read(text, read_at_ns=round(second * 1_000_000_000)) for second, text in pages]
    return [visit.step for visit in visits[1:] if visit.step]
