"""Agents one after the other on one spool, with visits to model servers made by hand. To drop one is to kill it."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from collectors import guard
from exporters.spool import Spool
from fleet.agent_config import Agent, AgentHub
from fleet.agent_engine_config import AgentEngine, AgentKubernetes
from fleet.telemetry import DeviceWindowRow
from services.agent.assembly import NodeAgent
from services.agent.targets import EngineReading, make_server
from tests.collectors.serving.engine_pages import SECOND
from tests.collectors.serving.two_lives import page
from tests.e2e.live_agents import NOWHERE, rows_of
from tests.services.agent.fed import BOOTS

if TYPE_CHECKING:
    from pathlib import Path

    from services.agent.engines import Watched

_NOW = int(time.time())
T0 = _NOW - _NOW % 3600 - 36_000
"""A full hour of today, so that nothing is too old, and so long ago that all rows have waited."""
MINUTE = {
    "device_window": (
        DeviceWindowRow(device="GPU-1", window_start_second=T0, window_ms=60_000, observed_ms=0, state="ok"),
    )
}
"""Rows with which those of model servers go."""


class Life(NodeAgent):
    """An agent of which no thread runs."""

    def __init__(
        self, spool: Path | None, *servers: str, boot_id: str = BOOTS[0], discover: bool = False, kind: str = "vllm"
    ) -> None:
        hub = AgentHub(address=NOWHERE) if spool else AgentHub()
        config = Agent(
            cluster="c", kubelet_socket="", kernel_log="", processes=False, spool=str(spool), hub=hub,
            engines=tuple(AgentEngine(kind, f"http://127.0.0.1:9/{name}", name) for name in servers),
            kubernetes=AgentKubernetes(discover=discover, api="https://127.0.0.1:9"),
        )  # fmt: skip
        super().__init__(config, "n1", boot_id, "1")
        self.engines: Any = self._engines
        self.watched: dict[str, Watched] = {}
        self._servers: dict[str, Any] = {}

    def _server(self, key: str) -> Any:
        """What reads a server that is watched, as the agent makes it."""
        if key not in self._servers:
            watched = self.watched[key] = next(one for one in self.engines._watched if one.target.key == key)
            self._servers[key] = make_server(watched.target.engine, None, watched.windows.counted(key))
        return self._servers[key]

    def visit(self, second: int, tokens: int | None, key: str = "server:a") -> None:
        """Visit a server that made so many tokens; None for one that does not answer."""
        server = self._server(key)
        visit: guard.Visit[EngineReading] = guard.Visit("failed", 0.1, reason="refused")
        if tokens is not None:
            reading = EngineReading(server.read(page(tokens), read_at_ns=second * SECOND))
            visit = guard.Visit("ok", 0.1, reading)
        self.engines.take(self.watched[key], visit, second)

    def save(self, rows: Any = None) -> None:
        """A tick, at which devices have these rows."""
        self._save(rows or {})

    def stop_at(self, second: int) -> None:
        """End in good order."""
        self.engines.close(second)
        self.save()
        self.drop()

    def drop(self) -> None:
        """What a kill leaves: the file, which nobody holds open."""
        if self._spool:
            self._spool.close()


class Spooled:
    """What is on disk."""

    def __init__(self, path: Path) -> None:
        spool = Spool(path, 1 << 30)
        self.batches = spool.next_batches(0, 10_000)
        self.state: Any = spool.state_get("engines")
        self.of_devices: Any = spool.state_get("recorder")
        spool.close()
        self.rows: list[dict[str, Any]] = rows_of(one.payload for one in self.batches).get("engine_window", [])

    @property
    def tokens(self) -> int:
        """All that rows say."""
        return sum(row["generation_tokens"] or 0 for row in self.rows)

    @property
    def fullest_window_ms(self) -> int:
        """More than a window where one is accounted for twice."""
        of_window: Counter[tuple[str, int]] = Counter()
        for row in self.rows:
            of_window[row["engine_index"], row["window_start_second"]] += row["window_ms"]
        return max(of_window.values(), default=0)
