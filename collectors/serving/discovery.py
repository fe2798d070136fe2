"""Find the model servers of a node: its pods, as the Kubernetes API lists them, that say they are one.

What is asked is a GET of `/api/v1/pods` with the node as field selector, page by page (Kubernetes API, "Retrieving
large results sets in chunks"); it needs the right to list pods. What the answer says is in `collectors.serving.pods`.
The token of a service account is replaced about once an hour, so its file is read each time; it is sent to the API
only, never to a pod.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from collectors.collector import SourceAbsentError
from collectors.exposition import PageError
from collectors.http_get import Ask, Tls, address_name, get
from collectors.pages import read_token
from collectors.samples import Rejected
from collectors.serving.pods import PodRefusedError, server_of_pod
from fleet.errors import ConfigError, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.serving.pods import FoundServer

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
POD_LIMIT: Final = 1024
"""Pods of one node that are looked at; Kubernetes itself is tested with 110."""
_PAGE_PODS: Final = 500
_PAGE_LIMIT: Final = 8
_BYTE_LIMIT: Final = 16 * 1024 * 1024
_CONTINUE_LIMIT: Final = 4096
_CUT_OFF: Final = frozenset({"too_many_pods", "too_many_pages"})
_NODE: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """Where the API of the cluster is, and as whom it is asked. `timeout_seconds` is for all pages together."""

    node: str
    api: str
    ca: Path | None = None
    token_file: Path | None = None
    timeout_seconds: float = 10.0
    byte_limit: int = _BYTE_LIMIT
    """Of one page."""

    def __post_init__(self) -> None:
        """Refuse what is no node's name (it becomes part of a question) and a token without TLS."""
        if not _NODE.fullmatch(self.node):
            raise ConfigError(f"{quoted(self.node)} is not the name of a node in Kubernetes")
        if self.token_file and urlsplit(self.api).scheme != "https":
            raise ConfigError("a token is sent to the Kubernetes API over https only")


class Discovered(NamedTuple):
    """The model servers of a node, by pod, and how many pods were refused, by reason."""

    servers: tuple[FoundServer, ...]
    rejected: tuple[Rejected, ...]

    @property
    def is_whole(self) -> bool:
        """Whether all pods were looked at: only then is one that is not there gone."""
        return not any(rejected.reason in _CUT_OFF for rejected in self.rejected)


def in_cluster(node: str, environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Kubernetes:
    """Return the API as every pod is told of it. SourceAbsentError outside of Kubernetes."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT") or "443"
    if not host:
        raise SourceAbsentError("this is no pod in Kubernetes: KUBERNETES_SERVICE_HOST is not set")
    place = f"[{host}]" if ":" in host else host
    return Kubernetes(node, f"https://{place}:{port}", folder / "ca.crt", folder / "token")


def discover(kubernetes: Kubernetes) -> Discovered:
    """Ask the API for the pods of the node, and return the model servers among them, sorted by pod.

    SourceAbsentError without the token's file; PageError with one line if the API does not answer, refuses, or says
    what is no list of pods. A pod that contradicts itself costs that pod, and is counted.
    """
    token = _token(kubernetes.token_file)
    deadline = time.monotonic() + kubernetes.timeout_seconds
    found: dict[str, FoundServer] = {}
    refused: Counter[str] = Counter()
    seen = 0
    following = ""
    for _ in range(_PAGE_LIMIT):
        pods, following = _page(kubernetes, token, following, deadline)
        looked_at = pods[: POD_LIMIT - seen]
        seen += len(looked_at)
        for pod in looked_at:
            try:
                server = server_of_pod(pod, kubernetes.node)
            except PodRefusedError as error:
                refused[error.reason] += 1
                continue
            if server:
                # Pages are no snapshot: a pod may be in two.
                found[server.pod_uid] = server
        if len(pods) > len(looked_at) or (following and seen == POD_LIMIT):
            # How many more there are is not asked: at least one.
            refused["too_many_pods"] += max(1, len(pods) - len(looked_at))
            following = ""
        if not following:
            break
    if following:
        refused["too_many_pages"] += 1
    servers = tuple(sorted(found.values(), key=lambda server: (server.pod, server.pod_uid)))
    return Discovered(servers, tuple(Rejected(reason, count) for reason, count in sorted(refused.items())))


def _token(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        file.stat()
    except FileNotFoundError:
        raise SourceAbsentError(f"{quoted(str(file), 200)}: there is no token for the Kubernetes API") from None
    except OSError:
        pass  # what is wrong with it is told by who reads it
    return read_token(file)


def _page(kubernetes: Kubernetes, token: str | None, following: str, deadline: float) -> tuple[list[Any], str]:
    """Return the pods of one page of the list, and the token of the next ("" at the end)."""
    query = {"fieldSelector": f"spec.nodeName={kubernetes.node}", "limit": str(_PAGE_PODS)}
    # Version 0 is answered from the API server's cache, a moment old; else each question of each node would read the
    # pods of the whole cluster from its database. A page that follows may name no version.
    query |= {"continue": following} if following else {"resourceVersion": "0"}
    place = f"{kubernetes.api.rstrip('/')}/api/v1/pods"
    name = address_name(place)
    ask = Ask(
        timeout_seconds=kubernetes.timeout_seconds,
        byte_limit=kubernetes.byte_limit,
        token=token,
        tls=Tls(ca=kubernetes.ca) if kubernetes.ca else None,
        accept="application/json",
    )
    body = get(f"{place}?{urlencode(query)}", ask, deadline)
    if len(body) > kubernetes.byte_limit:
        raise PageError(f"{name}: is larger than {kubernetes.byte_limit} bytes")
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise PageError(f"{name}: is not JSON") from None
    items = None
    if isinstance(answer, dict) and answer.get("kind") == "PodList":
        items = answer.get("items") or []  # Go writes a list of nothing as null
    if not isinstance(items, list):
        raise PageError(f"{name}: is JSON, but no list of pods")
    metadata = answer.get("metadata")
    more = metadata.get("continue") if isinstance(metadata, dict) else None
    if more is not None and (not isinstance(more, str) or len(more) > _CONTINUE_LIMIT):
        raise PageError(f"{name}: names a next page that cannot be asked for")
    return items, more or ""
