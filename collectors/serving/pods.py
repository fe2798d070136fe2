"""What a pod says of the model server in it: its annotations and labels, which anybody who makes a pod writes.

A kind is said, never guessed. `gputally.io/engine` makes a pod a model server; `gputally.io/port`, `path`, `scheme`,
`role` and `model` are told the same way, as annotation or as label, the annotation first. Where `gputally.io/port` is
not there, the place of the page is that of the `prometheus.io/` annotations; those describe one page together, so they
are not mixed with a port of ours (a service mesh sets them to its own). An address is made from the pod's IP only.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from fleet.identity import bounded_name
from fleet.serving_kinds import KIND_OPTIONS, SERVER_KINDS, TRITON_GRPC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.serving.samples import Role

PREFIX: Final = "gputally.io/"
_PROMETHEUS: Final = "prometheus.io/"

DEFAULT_PAGES: Final[Mapping[str, tuple[int, str]]] = {
    "dynamo": (8000, "/metrics"),
    "envoy_ai_gateway": (1064, "/metrics"),
    "inference_extension": (9090, "/metrics"),
    "kserve": (8080, "/metrics"),
    "litellm": (4000, "/metrics/"),
    "llamacpp": (8080, "/metrics"),
    "lmdeploy": (23333, "/metrics"),
    "mlserver": (8082, "/metrics"),
    "nim": (8000, "/v1/metrics"),
    "ray_serve": (8080, "/metrics"),
    "sglang": (30000, "/metrics"),
    "tgi": (80, "/metrics"),
    "torchserve": (8082, "/metrics"),
    "triton": (8002, "/metrics"),
    TRITON_GRPC: (8001, ""),
    "trtllm": (8000, "/prometheus/metrics"),
    "trtllm_json": (8000, "/metrics"),
    "vllm": (8000, "/metrics"),
}
"""Port and path where a server of a kind shows its page unless it was told otherwise."""

_ROLES: Final = ("prefill", "decode", "unified")
_PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)
_PATH: Final = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:%/-]{0,255}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_NAME_PART: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]{0,252})")

Refusal = Literal[
    "bad_pod", "bad_address", "unknown_engine", "bad_port", "bad_path", "bad_scheme", "bad_role", "bad_model"
]


class PodRefusedError(Exception):
    """A pod that says it is a model server, and something else that cannot be; `reason` is what is counted."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason)
        self.reason: Refusal = reason


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A model server in a pod. `server` is `namespace/owner`, which replicas share; `pod` is `namespace/pod`.

    `began_second` is when the first of its containers started, by the clock of its node; None where that is not told.
    """

    kind: str
    url: str
    server: str
    pod: str
    pod_uid: str
    model: str | None = None
    role: Role | None = None
    began_second: int | None = None


def server_of_pod(pod: object, node: str) -> FoundServer | None:
    """Return the model server of a pod that runs on a node; None for a pod that is none, or does not run there.

    `pod` is an item of a `PodList` of the Kubernetes API. PodRefusedError if what it says has no meaning.
    """
    metadata = _mapping(pod, "metadata")
    told = {**_texts(metadata, "labels", PREFIX), **_texts(metadata, "annotations", PREFIX)}
    kind = told.get("engine")
    status = _mapping(pod, "status")
    if kind is None or status.get("phase") != "Running" or not status.get("podIP"):
        return None
    if _mapping(pod, "spec").get("nodeName") != node:
        return None
    if kind not in SERVER_KINDS:
        raise PodRefusedError("unknown_engine")
    namespace, name = _name(metadata.get("namespace")), _name(metadata.get("name"))
    role, options = told.get("role"), KIND_OPTIONS[kind]
    if role is not None and (role not in _ROLES or "role" not in options):
        raise PodRefusedError("bad_role")
    if told.get("model") and "model" not in options:
        raise PodRefusedError("bad_model")
    return FoundServer(
        kind=kind,
        url=_url(kind, _address(status["podIP"]), told, _texts(metadata, "annotations", _PROMETHEUS)),
        server=_bounded(f"{namespace}/{_owner(metadata) or name}", "bad_pod"),
        pod=_bounded(f"{namespace}/{name}", "bad_pod"),
        pod_uid=_name(metadata.get("uid")),
        model=_bounded(told["model"], "bad_model") if told.get("model") else None,
        role=cast("Role | None", role),
        began_second=_began_second(status),
    )


def _url(kind: str, address: str, told: Mapping[str, str], prometheus: Mapping[str, str]) -> str:
    default_port, default_path = DEFAULT_PAGES[kind]
    # Statistics by gRPC are no page: whoever annotated one for Prometheus meant another port.
    others = {} if "port" in told or kind == TRITON_GRPC else prometheus
    port = told.get("port", others.get("port", str(default_port)))
    if not _PORT.fullmatch(port) or not 0 < int(port) < 65_536:
        raise PodRefusedError("bad_port")
    scheme = told.get("scheme", others.get("scheme", "http")).lower()
    if scheme not in {"http", "https"}:
        raise PodRefusedError("bad_scheme")
    if kind == TRITON_GRPC:
        return f"{'grpcs' if scheme == 'https' else 'grpc'}://{address}:{int(port)}"
    path = told.get("path", others.get("path", default_path))
    if not _PATH.fullmatch(path):
        raise PodRefusedError("bad_path")
    return f"{scheme}://{address}:{int(port)}{path}"


def _began_second(status: Mapping[str, Any]) -> int | None:
    """When the oldest of the containers that run started (RFC 3339, in UTC); None if one of them does not tell."""
    told = status.get("containerStatuses")
    running = [_mapping(each, "state").get("running") for each in (told if isinstance(told, list) else ())[:64]]
    began: list[int] = []
    for state in running:
        if state is None:
            continue
        text = state.get("startedAt") if isinstance(state, dict) else None
        if not isinstance(text, str) or not _TIME.fullmatch(text):
            return None
        try:
            began.append(int(datetime.fromisoformat(text).timestamp()))
        except ValueError:
            return None
    return min(began, default=None)


def _address(told: object) -> str:
    """An IP as an address holds it. A pod has none of this host's own or of the link, where clouds tell secrets."""
    if not isinstance(told, str):
        raise PodRefusedError("bad_address")
    try:
        address = ipaddress.ip_address(told)
    except ValueError:
        raise PodRefusedError("bad_address") from None
    plain = (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address
    if plain.is_loopback or plain.is_link_local or plain.is_multicast or plain.is_unspecified or "%" in told:
        raise PodRefusedError("bad_address")
    return f"[{address}]" if address.version == 6 else str(address)


def _owner(metadata: Mapping[str, Any]) -> str | None:
    """The name of what made the pod. A ReplicaSet is a Deployment's, whose name it has with a hash behind.

    A static pod belongs to its node, which is no name for it.
    """
    owners = metadata.get("ownerReferences")
    for owner in owners[:16] if isinstance(owners, list) else ():
        if not isinstance(owner, dict) or owner.get("controller") is not True or owner.get("kind") == "Node":
            continue
        name = _name(owner.get("name"))
        template = _mapping(metadata, "labels").get("pod-template-hash")
        if owner.get("kind") == "ReplicaSet" and isinstance(template, str) and template:
            return name.removesuffix(f"-{template}") or name
        return name
    return None


def _mapping(holder: object, name: str) -> Mapping[str, Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else {}


def _texts(metadata: Mapping[str, Any], name: str, prefix: str) -> dict[str, str]:
    """The texts under names with a prefix, without it. What is no text is told as one that has no meaning."""
    return {
        key.removeprefix(prefix): value.strip() if isinstance(value, str) else "\0"
        for key, value in _mapping(metadata, name).items()
        if key.startswith(prefix)
    }


def _name(told: object) -> str:
    """A name of an object in Kubernetes (RFC 1123), or an uid; a little more is let through than it allows."""
    if not isinstance(told, str) or not _NAME_PART.fullmatch(told):
        raise PodRefusedError("bad_pod")
    return told


def _bounded(text: str, reason: Refusal) -> str:
    try:
        return bounded_name(text)
    except ValueError:
        raise PodRefusedError(reason) from None
