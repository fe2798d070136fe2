"""The model servers: each is asked as the agent would ask it, and the Kubernetes API for those in pods."""

from __future__ import annotations

import socket
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from collectors.collector import SourceAbsentError
from collectors.exposition import PageError
from fleet.serving_kinds import GATEWAY_KINDS, TRTLLM_JSON
from services.agent.discovery import PodServers
from services.agent.doctor.deadline import all_within, within
from services.agent.targets import EngineTarget
from services.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.agent_config import Agent
    from fleet.agent_engine_config import AgentEngine
    from services.agent.targets import EngineReading, Target

VISIT_SECONDS: Final = 15.0
LISTING_SECONDS: Final = 15.0
CONNECT_SECONDS: Final = 3.0
_MAY_LIST: Final = "the ClusterRole in deploy/kubernetes/agent.yaml lets the agent's service account list pods"
_HINTS: Final = (
    ("HTTP 401", "it wants a token, or another one: {token}"),
    ("HTTP 403", "it wants a token, or another one: {token}"),
    ("UNAUTHENTICATED", "it wants a token, or another one: {token}"),
    ("PERMISSION_DENIED", "it wants a token, or another one: {token}"),
    ("HTTP 400", "a server that has a page for each model wants to be told which: {query}"),
    ("HTTP 404", "its page is elsewhere, or switched off"),
    ("not trusted", "{ca} names who signs it"),
    ("CERTIFICATE_REQUIRED", "it wants a certificate of the agent: {certificate}"),
    ("TLS failed", "does it speak TLS there, and does it want a certificate of the agent ({certificate})?"),
    ("Connection refused", "is it up, and is this its port?"),
    ("none that every", "is it of another kind, or are its metrics switched off?"),
)
"""What a visit may fail of, and what helps; the first that is in the message counts."""


def configured(config: Agent) -> Iterator[Finding]:
    """Whether each server of the configuration answers, and says what such a server says."""
    looks = []
    for number, engine in enumerate(config.engines):
        path = f"agent.engines[{number}]"
        keys = {"token": f"{path}.token_file", "query": f"{path}.query_model", "ca": f"{path}.ca"}
        subject = f"engine {engine.name}"
        looks.append((subject, partial(_visit, subject, engine, keys | {"certificate": f"{path}.certificate"})))
    yield from all_within(VISIT_SECONDS, looks)


def in_pods(config: Agent, node: str) -> Iterator[Finding]:
    """Whether the pods of the node can be listed, which of them are model servers, and whether those answer."""
    found: list[Target] = []
    yield from within(LISTING_SECONDS, "kubernetes", lambda: _list(config, node, found))
    keys = {
        "token": "[[agent.engines]] with token_file, as none is sent to a pod",
        "query": "[[agent.engines]] with query_model",
        "ca": "agent.kubernetes.pod_ca",
        "certificate": "agent.kubernetes.pod_certificate",
    }
    looks = [(each.collector, partial(_visit, each.collector, each.engine, keys)) for each in tuple(found)]
    yield from all_within(VISIT_SECONDS, looks)


def _list(config: Agent, node: str, found: list[Target]) -> Iterator[Finding]:
    told = config.kubernetes
    if not told.discover:
        yield Finding("ok", "kubernetes", "not asked for model servers (agent.kubernetes.discover = false)")
        return
    try:
        reading = PodServers(told, node, config.engines).collect()
    except SourceAbsentError as error:
        words = "in a pod set automountServiceAccountToken: true, elsewhere agent.kubernetes.api and its token_file"
        yield Finding("fail", "kubernetes", f"{error}; {words}, or discover = false")
        return
    except PageError as error:
        text = str(error)
        hint = _MAY_LIST if "HTTP 403" in text else "is the token_file of this cluster?" if "HTTP 401" in text else ""
        hint = "agent.kubernetes.ca names who signs it" if "not trusted" in text else hint
        yield Finding("fail", "kubernetes", f"{text}; {hint}" if hint else text)
        return
    found += reading.targets
    words = f"{len(found)} model servers in the pods of node {told.node or node}"
    yield Finding("ok", "kubernetes", f"{words}, by the annotation or label gputally.io/engine")
    if reading.rejected:
        refused = ", ".join(f"{rejected.count} {rejected.reason}" for rejected in reading.rejected)
        yield Finding("warn", "kubernetes", f"pods that are not visited, by reason: {refused}")


def _visit(subject: str, engine: AgentEngine, keys: dict[str, str]) -> Iterator[Finding]:
    if engine.kind == TRTLLM_JSON:
        yield _reached(subject, engine)
        return
    try:
        target = EngineTarget(engine)
        try:
            reading = target.collect()
        finally:
            target.close()
    except PageError as error:
        hint = next((hint for sign, hint in _HINTS if sign in str(error)), "")
        yield Finding("fail", subject, f"{error}; {hint.format(**keys)}" if hint else str(error))
        return
    yield from _told(subject, engine, reading)


def _told(subject: str, engine: AgentEngine, reading: EngineReading) -> Iterator[Finding]:
    totals = reading.visit.totals
    rows = totals.samples
    said = f"models named: {len({sample.model for sample in rows} - {None})}"
    if engine.kind not in GATEWAY_KINDS:
        version = next((version for row in rows if (version := getattr(row, "engine_version", None))), "not told")
        said = f"version {version}, {said}"
    yield Finding("ok", subject, f"{engine.kind} at {engine.url} answers: {said}")
    if totals.required_missing:
        words = f"it lacks what a server of its kind always has: {', '.join(totals.required_missing)}"
        yield Finding("warn", subject, f"{words}; is it of another kind, or of a version that is too old?")
    if refused := [f"{rejected.count} {rejected.reason}" for rejected in totals.rejected]:
        yield Finding("warn", subject, f"values that cannot be believed, by reason: {', '.join(refused)}")


def _reached(subject: str, engine: AgentEngine) -> Finding:
    """Reading this page would take its rows from the agent."""
    parts = urlsplit(engine.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), CONNECT_SECONDS).close()
    except OSError as error:
        words = f"{engine.url} cannot be reached: {error.strerror or error}; is it up, and is this its port?"
        return Finding("fail", subject, words)
    return Finding("ok", subject, f"{engine.url} can be reached; not read, as that would take its rows from the agent")
