"""The model servers of a node: each is visited by itself, becomes rows for the lake and series for the page."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collectors.exposition import PageError
from collectors.guard import Guard
from collectors.pages import read_token
from collectors.runners import ThreadRunner
from collectors.samples import Rejected
from collectors.serving.collector import EngineServer, Visit
from collectors.serving.engines import ENGINES
from collectors.serving.measured import measured_visit
from collectors.serving.servers import TRTLLM_JSON
from collectors.serving.trtllm_json import TrtllmJsonServer
from collectors.serving.windows import EngineWindows
from fleet.catalogue import by_name
from fleet.errors import ConfigError, quoted
from fleet.measurement import Measurement
from fleet.telemetry import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from collectors import guard
    from fleet.agent_config import AgentEngine
    from fleet.telemetry import Row

KINDS: Final = (*sorted(ENGINES), TRTLLM_JSON)
DEADLINE_SECONDS: Final = 20.0
"""A page may take 10 seconds; the question for the version comes on top."""
PAGE_BYTE_LIMIT: Final = 8 * 1024 * 1024
_TABLES: Final = {row: table for table, row in TABLES.items()}


@dataclass(frozen=True, slots=True)
class EngineReading:
    """What a visit to a model server yielded."""

    visit: Visit

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """What was refused; a signal that such an engine always has and this page lacks is one."""
        totals = self.visit.totals
        missing = len(totals.required_missing)
        return (*totals.rejected, Rejected("required_missing", missing)) if missing else totals.rejected


class EngineTarget:
    """The collector of one model server."""

    def __init__(self, target: AgentEngine) -> None:
        """Read the token. PageError when there is none in the file; KeyError for a kind that is none."""
        self._target = target
        self._token = _token(target)
        self._server = _server(target, self._token)

    def collect(self) -> EngineReading:
        """Visit the server. PageError when it has nothing to say."""
        try:
            return EngineReading(self._server.collect())
        except PageError:
            token = _token(self._target)
            if token == self._token:
                raise
            # The file holds another one by now. What was added since the last visit is not known then.
            self._token, self._server = token, _server(self._target, token)
            return EngineReading(self._server.collect())

    def close(self) -> None:
        """Give back what the collector holds."""
        self._server.close()


def _token(target: AgentEngine) -> str | None:
    return read_token(Path(target.token_file)) if target.token_file else None


def _server(target: AgentEngine, token: str | None) -> EngineServer | TrtllmJsonServer:
    named: dict[str, Any] = {"token": token, "server": target.name, "model": target.model or None}
    if target.kind == TRTLLM_JSON:
        return TrtllmJsonServer(target.url, byte_limit=PAGE_BYTE_LIMIT, **named)
    return EngineServer(ENGINES[target.kind], target.url, role=target.role or None, byte_limit=PAGE_BYTE_LIMIT, **named)


class Engines:
    """All model servers of a node. Each is fed by a thread of its own; the page may be asked for at any moment."""

    def __init__(
        self, node: str, targets: Sequence[AgentEngine], keep: Callable[[Mapping[str, Sequence[Row]], int], None]
    ) -> None:
        """Take whom to visit, and who takes the rows of windows that are over (and the second at which they are).

        ConfigError for a kind that is none.
        """
        for number, target in enumerate(targets):
            if target.kind not in KINDS:
                raise ConfigError(
                    f"agent.engines[{number}].kind must be one of {', '.join(KINDS)}, not {quoted(target.kind)}"
                )
        self._node, self._targets, self._keep = node, tuple(targets), keep
        self._lock = threading.Lock()
        self._shown: dict[str, Visit] = {}
        self._windows = {
            target.name: EngineWindows(longest_gap_seconds=max(5, 3 * target.period_seconds)) for target in targets
        }

    def guards(self) -> Iterator[tuple[Guard[EngineReading], float, Callable[[guard.Visit[EngineReading]], None]]]:
        """Who is visited, how often, and what is done with a visit."""
        for target in self._targets:
            runner = ThreadRunner(partial(EngineTarget, target))
            guarded = Guard(f"serving:{target.name}", runner, deadline_seconds=DEADLINE_SECONDS)
            yield guarded, target.period_seconds, partial(self.take, target.name)

    def take(self, name: str, visit: guard.Visit[EngineReading], second: int | None = None) -> None:
        """Take a visit. A server that does not answer shows nothing: what it showed before is no longer known."""
        second = int(time.time()) if second is None else second
        found = visit.reading.visit if visit.reading else None
        with self._lock:
            if found:
                self._shown[name] = found
            else:
                self._shown.pop(name, None)
            rows = self._windows[name].advance(second, name, found)
        self._keep(_by_table(rows), second)

    def close(self, second: int) -> Mapping[str, Sequence[Row]]:
        """The rows of all windows that are open, when the agent stops."""
        with self._lock:
            return _by_table(row for windows in self._windows.values() for row in windows.close(second))

    def measurements(self) -> Iterator[Measurement]:
        """The series of all servers that answer."""
        with self._lock:
            shown = tuple(self._shown.values())
            refused = {f"serving:{name}": dict(windows.rejected) for name, windows in self._windows.items()}
        for visit in shown:
            yield from measured_visit(visit)
        for part, reasons in refused.items():
            for reason, count in sorted(reasons.items()):
                yield Measurement(
                    by_name("gputally_collector_rejected_events_total"), (self._node, part, reason), count
                )


def _by_table(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(_TABLES[type(row)], []).append(row)
    return found
