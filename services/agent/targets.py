"""A model server to visit, as the configuration lists it or as a pod says of itself, and who visits it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from collectors.exposition import PageError
from collectors.http_get import Tls
from collectors.pages import read_token
from collectors.samples import Rejected
from collectors.serving.servers import server_of
from fleet.agent_engine_config import AgentEngine
from fleet.serving_kinds import ENGINE_KINDS, KIND_OPTIONS, TRITON_GRPC
from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collectors.serving.collector import Visit
    from collectors.serving.counters import Counted
    from collectors.serving.gateway import GatewayVisit
    from collectors.serving.pods import FoundServer
    from collectors.serving.servers import Server
    from fleet.agent_engine_config import AgentKubernetes

POD: Final = "pod:"
"""What the keys of servers in pods begin with."""
PAGE_BYTE_LIMIT: Final = 8 * 1024 * 1024
GATEWAY_ROW_LIMIT: Final = 256
"""Tenants and models of one gateway that the page tells apart; what is more is added to the row without either."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to visit, and how. `key` is who counters are kept for: a pod that is replaced by its namesake is another.

    `began_second` is when the server began to count, where that is known; then its first page tells all it has done.
    """

    key: str
    collector: str
    engine: AgentEngine
    pod: str = ""
    began_second: int | None = None


def configured(engine: AgentEngine) -> Target:
    """The target of a server that the configuration lists."""
    return Target(f"server:{engine.name}", f"serving:{engine.name}", engine)


def in_pod(found: FoundServer, told: AgentKubernetes, began_second: int | None = None) -> Target:
    """The target of a server in a pod. No token is ever sent there: anybody can say that a pod is a model server."""
    is_secure = found.url.startswith(("https:", "grpcs:"))
    engine = AgentEngine(
        kind=found.kind,
        url=found.url,
        server=found.server,
        model=found.model or "",
        role=found.role or "",
        ca=told.pod_ca if is_secure else "",
        certificate=told.pod_certificate if is_secure else "",
        key=told.pod_key if is_secure else "",
        period_seconds=told.pod_period_seconds,
    )
    pod = found.pod.partition("/")[2]
    return Target(f"{POD}{found.pod_uid}", f"pod:{found.pod}"[:TEXT_LIMIT], engine, pod, began_second)


@dataclass(frozen=True, slots=True)
class EngineReading:
    """What a visit to a model server or gateway yielded."""

    visit: Visit | GatewayVisit

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """What was refused; a signal that such a server always has and this page lacks is one."""
        totals = self.visit.totals
        missing = len(totals.required_missing)
        return (*totals.rejected, Rejected("required_missing", missing)) if missing else totals.rejected


class EngineTarget:
    """The collector of one model server. It goes on from what was counted before, if that is at hand."""

    def __init__(self, engine: AgentEngine, saved: Counted | None = None) -> None:
        """Read the token. PageError when there is none in the file."""
        self._engine = engine
        self._token = _token(engine)
        self._server = make_server(engine, self._token, saved)

    def collect(self) -> EngineReading:
        """Visit the server. PageError when it has nothing to say."""
        try:
            return EngineReading(self._server.collect())
        except PageError:
            token = _token(self._engine)
            if token == self._token:
                raise
            # The file holds another one by now.
            self._server.close()
            counted: Counted | None = getattr(self._server, "counted", None)
            self._token, self._server = token, make_server(self._engine, token, counted)
            return EngineReading(self._server.collect())

    def close(self) -> None:
        """Give back what the collector holds."""
        self._server.close()


def _token(engine: AgentEngine) -> str | None:
    return read_token(Path(engine.token_file)) if engine.token_file else None


def make_server(engine: AgentEngine, token: str | None, saved: Counted | None = None) -> Server:
    """What reads a server, told all that its kind knows, and what was counted of it if steps are made from that."""
    known = KIND_OPTIONS[engine.kind]
    options: dict[str, Any] = {"token": token, "tls": tls_of(engine), "server": engine.name}
    if engine.kind != TRITON_GRPC:
        options["byte_limit"] = PAGE_BYTE_LIMIT
    if engine.kind in (*ENGINE_KINDS, TRITON_GRPC):
        options["saved"] = saved
    if "model" in known:
        options["model"] = engine.model or engine.query_model or None
    if "role" in known:
        options["role"] = engine.role or None
    if "tenant_label" in known:
        options |= {"tenant_label": engine.tenant_label or None, "row_limit": GATEWAY_ROW_LIMIT}
    question = f"?{urlencode({'model': engine.query_model})}" if engine.query_model else ""
    return server_of(engine.kind, f"{engine.url}{question}", **options)


def tls_of(engine: AgentEngine) -> Tls | None:
    """The files of a target's TLS; None where all is the system's."""
    if not (engine.ca or engine.certificate):
        return None
    ca, certificate, key = (Path(name) if name else None for name in (engine.ca, engine.certificate, engine.key))
    return Tls(ca, certificate, key)
