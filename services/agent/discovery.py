"""Find the model servers in the pods of a node while the agent runs: begin to visit those that come, end those that go.

The pods are what the Kubernetes API lists. Its answers may be a moment old, and not of the same moment: a pod that is
missing once may only be missing there, one that is missing twice, or whose name another has, is gone.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from collectors.guard import Guard
from collectors.runners import ThreadRunner
from collectors.samples import Rejected
from collectors.serving.discovery import Kubernetes, discover, in_cluster
from fleet.agent_engine_config import MOST_ENGINES
from services.agent.asking import Asking
from services.agent.targets import Target, in_pod

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from collectors.guard import Visit
    from collectors.serving.pods import FoundServer
    from fleet.agent_engine_config import AgentEngine, AgentKubernetes
    from services.agent.engines import Engines, Watched
    from services.agent.runtime import Runtime

log = logging.getLogger(__name__)

COLLECTOR: Final = "kubernetes"
DEADLINE_SECONDS: Final = 15.0
"""All pages of a listing have 10 seconds together."""
_MISSED_UNTIL_GONE: Final = 2
_PORTS: Final = {"http": 80, "https": 443}


def kubernetes_of(told: AgentKubernetes, node: str, environment: Mapping[str, str] | None = None) -> Kubernetes:
    """The API as it is configured, or as this pod is told of it.

    SourceAbsentError outside of Kubernetes, where none is configured; ConfigError for what is no node's name.
    """
    node = told.node or node
    ca, token_file = (Path(name) if name else None for name in (told.ca, told.token_file))
    if told.api:
        return Kubernetes(node, told.api, ca, token_file)
    found = in_cluster(node, os.environ if environment is None else environment)
    return replace(found, ca=ca or found.ca, token_file=token_file or found.token_file)


@dataclass(frozen=True, slots=True)
class PodReading:
    """What a listing yielded: whom to visit from now on, and what was refused."""

    targets: tuple[Target, ...]
    rejected: tuple[Rejected, ...]


@dataclass(slots=True)
class _Known:
    found: FoundServer
    target: Target
    missed: int = 0


class PodServers:
    """The collector of the model servers in pods. Pods that are visited keep their place before those that come."""

    def __init__(self, told: AgentKubernetes, node: str, configured: Sequence[AgentEngine] = ()) -> None:
        """Take whom the configuration lists: the same place is not visited twice."""
        self._told, self._node = told, node
        self._places = {_place(engine.url) for engine in configured}
        self._room = MOST_ENGINES - len(configured)
        self._known: dict[str, _Known] = {}
        self._asked_second: int | None = None

    def collect(self) -> PodReading:
        """Ask the API. SourceAbsentError outside of Kubernetes; PageError with one line when it has no answer."""
        second = int(time.time())
        found = discover(kubernetes_of(self._told, self._node))
        self._known = self._still_there(found.servers, is_whole=found.is_whole)
        refused = Counter({rejected.reason: rejected.count for rejected in found.rejected})
        refused.update(self._add(found.servers))
        if found.is_whole:
            self._asked_second = second
        targets = tuple(known.target for known in self._known.values())
        return PodReading(targets, tuple(Rejected(reason, count) for reason, count in sorted(refused.items())))

    def close(self) -> None:
        """Nothing is held between visits."""

    def _still_there(self, servers: Sequence[FoundServer], *, is_whole: bool) -> dict[str, _Known]:
        listed = {server.pod_uid: server for server in servers}
        names = {server.pod for server in servers}
        kept: dict[str, _Known] = {}
        for uid, known in self._known.items():
            now = listed.get(uid)
            if now is not None:
                if _said(now) == _said(known.found):
                    kept[uid] = _Known(known.found, known.target)
            elif known.found.pod not in names and known.missed + is_whole < _MISSED_UNTIL_GONE:
                kept[uid] = _Known(known.found, known.target, known.missed + is_whole)
        return kept

    def _add(self, servers: Iterable[FoundServer]) -> Counter[str]:
        """Take what is new while there is room, and return what was refused."""
        refused: Counter[str] = Counter()
        places = self._places | {_place(known.found.url) for known in self._known.values()}
        for server in servers:
            if server.pod_uid in self._known:
                continue
            if _place(server.url) in places:
                refused["same_address"] += 1
            elif len(self._known) >= self._room:
                refused["too_many_engines"] += 1
            else:
                places.add(_place(server.url))
                target = in_pod(server, self._told, self._began_second(server))
                self._known[server.pod_uid] = _Known(server, target)
        return refused

    def _began_second(self, server: FoundServer) -> int | None:
        """When it began, if that was after the listing before: no visit can have counted anything of it."""
        began, asked = server.began_second, self._asked_second
        return began if began is not None and asked is not None and began >= asked else None


def _said(server: FoundServer) -> FoundServer:
    """What a pod says of itself; that a container of it starts again changes nothing."""
    return replace(server, began_second=None)


def _place(url: str) -> tuple[str | None, int | None]:
    parts = urlsplit(url)
    return parts.hostname, parts.port or _PORTS.get(parts.scheme)


class PodVisits:
    """Visits the model servers that are found, and no others."""

    def __init__(self, engines: Engines, runtime: Runtime) -> None:
        """Take who keeps what visits say, and who asks."""
        self._engines, self._runtime = engines, runtime
        self._visited: dict[str, tuple[Watched, Asking]] = {}
        self._listings = 0

    def asking(self, told: AgentKubernetes, node: str, configured: Sequence[AgentEngine]) -> Asking:
        """Who lists the pods, how often, and what is done with a listing."""
        runner = ThreadRunner(lambda: PodServers(told, node, configured))
        guard = Guard(COLLECTOR, runner, deadline_seconds=DEADLINE_SECONDS)
        return Asking(guard, told.period_seconds, self.take)

    def take(self, visit: Visit[PodReading]) -> None:
        """Take a listing. Where there is none, the pods that are known are still there."""
        if visit.reading is None:
            return
        wanted = {target.key: target for target in visit.reading.targets}
        self._leave([key for key, (watched, _) in self._visited.items() if wanted.get(key) is not watched.target])
        for key, target in wanted.items():
            if key not in self._visited:
                watched = self._engines.watch(target)
                asking = self._engines.asking(watched)
                self._visited[key] = watched, asking
                self._runtime.watch(asking)
                log.info("model server found", extra={"pod": target.collector, "engine": target.engine.kind})
        self._listings += 1
        if self._listings == _MISSED_UNTIL_GONE:
            # The agent before this one visited pods that are gone by now.
            self._engines.close_unwatched()

    def _leave(self, keys: Collection[str]) -> None:
        for key in keys:
            watched, asking = self._visited.pop(key)
            self._engines.leave(watched)
            self._runtime.leave(asking)
            log.info("model server gone", extra={"pod": watched.target.collector})
