"""Model servers in the section `[agent]` of `gputally.toml`: those that are listed, and those found in Kubernetes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from fleet.binding import FieldError
from fleet.errors import quoted
from fleet.identity import bounded_name
from fleet.serving_kinds import KIND_OPTIONS, NEVER_TENANTS, SERVER_KINDS, TRITON_GRPC

MOST_ENGINES: Final = 64
"""Model servers that one agent visits, those that it finds included."""
_SECURE: Final = ("https", "grpcs")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_OPTIONS: Final = ("model", "role", "query_model", "tenant_label")


@dataclass(frozen=True, slots=True)
class AgentEngine:
    """A model server or gateway that the agent visits. `model` and `role` are for pages that do not say."""

    kind: str
    url: str
    server: str = ""
    model: str = ""
    role: Literal["", "prefill", "decode", "unified"] = ""
    query_model: str = ""
    tenant_label: str = ""
    token_file: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""
    period_seconds: int = 15

    def __post_init__(self) -> None:
        """Refuse what is no name, no address of a page, holds a secret, or has no meaning for the kind."""
        if self.kind not in SERVER_KINDS:
            raise FieldError("kind", f"must be one of {', '.join(sorted(SERVER_KINDS))}, not {quoted(self.kind)}")
        for name in ("server", "model", "query_model"):
            _check_name(name, getattr(self, name))
        parts = _checked_url(self.kind, self.url)
        for name in _OPTIONS:
            if getattr(self, name) and name not in KIND_OPTIONS[self.kind]:
                raise FieldError(name, f"has no meaning for the kind {self.kind}")
        if self.tenant_label and (not _LABEL.fullmatch(self.tenant_label) or self.tenant_label in NEVER_TENANTS):
            raise FieldError("tenant_label", f"{quoted(self.tenant_label)} cannot be the label of a tenant")
        _check_certificates(self.ca, self.certificate, self.key, "", is_secure=parts.scheme in _SECURE)
        if self.token_file and self.kind == TRITON_GRPC and parts.scheme not in _SECURE:
            raise FieldError("token_file", "a token is sent by gRPC over TLS only (grpcs://)")
        _check_range("period_seconds", self.period_seconds, 1, 300)

    @property
    def name(self) -> str:
        """How the server is called in rows and series."""
        return self.server or urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True)
class AgentKubernetes:
    """How the agent finds model servers in the pods of its node. Without `api`, the API is that of its own pod."""

    discover: bool = False
    period_seconds: int = 30
    pod_period_seconds: int = 15
    node: str = ""
    api: str = ""
    ca: str = ""
    token_file: str = ""
    pod_ca: str = ""
    pod_certificate: str = ""
    pod_key: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no address, a token in the clear, and half of a certificate."""
        _check_name("node", self.node)
        is_secure = True
        if self.api:
            parts = _split(self.api)
            if parts is None or parts.scheme not in {"http", "https"}:
                raise FieldError("api", "is not the address of an API, such as https://10.96.0.1:443")
            if "@" in parts.netloc or parts.query or parts.fragment:
                raise FieldError("api", "may hold no user, password or query; put a token into token_file")
            is_secure = parts.scheme == "https"
        if self.token_file and not is_secure:
            raise FieldError("token_file", "a token is sent to the API over https only")
        if self.ca and not is_secure:
            raise FieldError("ca", "has no use without TLS: the API is not asked by https")
        _check_certificates(self.pod_ca, self.pod_certificate, self.pod_key, "pod_", is_secure=True)
        _check_range("period_seconds", self.period_seconds, 1, 3600)
        _check_range("pod_period_seconds", self.pod_period_seconds, 1, 300)


def _check_name(field: str, text: str) -> None:
    if text:
        try:
            bounded_name(text)
        except ValueError as error:
            raise FieldError(field, str(error)) from None


def _check_range(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise FieldError(field, f"must be from {low} to {high}, not {value}")


def _check_certificates(ca: str, certificate: str, key: str, prefix: str, *, is_secure: bool) -> None:
    if bool(certificate) != bool(key):
        raise FieldError(f"{prefix}key", f"{prefix}certificate and {prefix}key belong together")
    for name, told in (("ca", ca), ("certificate", certificate)):
        if told and not is_secure:
            raise FieldError(f"{prefix}{name}", "has no use without TLS: the url is neither https nor grpcs")


def _checked_url(kind: str, url: str) -> SplitResult:
    parts = _split(url)
    is_grpc = kind == TRITON_GRPC
    if parts is None or parts.scheme not in ({"grpc", "grpcs"} if is_grpc else {"http", "https"}):
        example = "Triton's gRPC, such as grpc://127.0.0.1:8001"
        page = "a page, such as http://127.0.0.1:8000/metrics"
        raise FieldError("url", f"is not the address of {example if is_grpc else page}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        more = "; query_model asks for a model" if "query_model" in KIND_OPTIONS[kind] else ""
        raise FieldError("url", f"may hold no user, password or query; put a token into token_file{more}")
    return parts


def _split(url: str) -> SplitResult | None:
    """The parts of an address with a host; None for what is none."""
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return None
    return parts if is_address and all(32 < ord(letter) < 127 for letter in url) else None


KUBERNETES_TEMPLATE = """
# Model servers in the pods of this node: those with the annotation or label gputally.io/engine.
[agent.kubernetes]
# Whether the agent asks the Kubernetes API for them.
discover = false
# How often.
period_seconds = 30
# How often each server that was found is read.
pod_period_seconds = 15
# Name of this node in Kubernetes; empty is the agent's name of it.
node = ""
# Address of the API; empty is the one that the agent's own pod is told.
api = ""
# CA of the API's certificate; empty is the one that the pod is told, or the system's.
ca = ""
# File with the bearer token for the API; empty is the pod's own, or none. It is read anew each time.
token_file = ""
# CA of pods whose pages speak TLS; empty trusts the system's.
pod_ca = ""
# Certificate that the agent shows to them.
pod_certificate = ""
# Its key.
pod_key = ""
"""

ENGINES_TEMPLATE = """
# A model server whose metrics the agent reads; repeat for each, without the leading marks.
# [[agent.engines]]
# What it is: one of the kinds of `gputally read`, such as vllm, sglang, tgi, triton or litellm.
# kind = "vllm"
# Its metrics page; of triton_grpc grpc://HOST:PORT, or grpcs:// with TLS.
# url = "http://127.0.0.1:8000/metrics"
# Its name in rows and series, as in [ledger] servers; empty is host and port of the address.
# server = "llm-a"
# The model, for a page that names none.
# model = ""
# What it does of a request where its page does not say: "prefill", "decode" or "unified".
# role = ""
# The model to ask for where a server has a page for each (?model= of llamacpp's router).
# query_model = ""
# The label that names the tenant, on the page of a gateway whose operator chose it.
# tenant_label = ""
# File with the bearer token that the page asks for; empty sends none.
# token_file = ""
# CA of the server's certificate, for https and grpcs; empty trusts the system's.
# ca = ""
# Certificate of the agent, for a server that asks for one.
# certificate = ""
# Its key.
# key = ""
# How often it is read.
# period_seconds = 15
"""
