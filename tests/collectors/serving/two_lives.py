"""An agent that visits one model server and may be killed: what is on its disk, and what it goes on from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collectors.serving.collector import EngineServer
from collectors.serving.engines import ENGINES
from collectors.serving.windows import EngineWindows
from tests.collectors.serving.engine_pages import SECOND

if TYPE_CHECKING:
    from fleet.telemetry import EngineHistogramRow, EngineWindowRow

ADDRESS = "http://llm:8000/metrics"
T0 = 1_800_000_000


def page(tokens: int, begun: int | None = 1000, served: int = 0, busy: float = 0.0) -> str:
    """An engine that made tokens and served requests of a quarter of a second each."""
    of = 'engine="0",model_name="m"'
    lines = [
        f"vllm:num_requests_running{{{of}}} 3",
        f"vllm:kv_cache_usage_perc{{{of}}} 0.5",
        f"vllm:prompt_tokens_total{{{of}}} 5",
        f"vllm:generation_tokens_total{{{of}}} {tokens}",
        f'vllm:time_to_first_token_seconds_bucket{{{of},le="0.5"}} {served}',
        f'vllm:time_to_first_token_seconds_bucket{{{of},le="+Inf"}} {served}',
        f"vllm:time_to_first_token_seconds_count{{{of}}} {served}",
        f"vllm:time_to_first_token_seconds_sum{{{of}}} {served * 0.25}",
        f"vllm:estimated_flops_per_gpu_total{{{of}}} {busy}",
    ]
    return "\n".join([*lines, *([] if begun is None else [f"process_start_time_seconds {begun}"]), ""])


@dataclass
class Disk:
    """What survives: rows that were spooled, and the state that was written with the newest of them."""

    rows: list[EngineWindowRow | EngineHistogramRow] = field(default_factory=list)
    state: str = "null"


class Life:
    """One process of the agent, from the state that the one before left."""

    def __init__(self, disk: Disk, kind: str = "vllm", address: str = ADDRESS) -> None:
        self.disk = disk
        self.windows = EngineWindows(state=json.loads(disk.state))
        self.server = EngineServer(ENGINES[kind], address, server="llm-a", saved=self.windows.counted("llm-a"))
        self.pending: list[EngineWindowRow | EngineHistogramRow] = []

    def visit(self, second: int, page: str | None) -> None:
        """Visit the server; without a page it does not answer."""
        seen = None if page is None else self.server.read(page, read_at_ns=second * SECOND)
        self.pending += self.windows.advance(second, "llm-a", seen)

    def save(self) -> None:
        """Spool the rows so far with the state, in one transaction."""
        self.disk.rows += self.pending
        self.pending = []
        self.disk.state = json.dumps(self.windows.state(), allow_nan=False)

    def stop(self, second: int) -> None:
        """End in good order."""
        self.pending += self.windows.close(second)
        self.save()


def restored(windows: EngineWindows) -> dict[str, Any]:
    """A state as it comes back from the disk."""
    state: dict[str, Any] = json.loads(json.dumps(windows.state(), allow_nan=False))
    return state
