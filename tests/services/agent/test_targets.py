"""Targets of every kind as their configuration says: TLS and certificates, tokens, models that are asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import grpc
import pytest

from collectors.exposition import PageError
from collectors.serving.pods import FoundServer
from fleet.agent_engine_config import AgentEngine, AgentKubernetes
from fleet.serving_kinds import KIND_OPTIONS, SERVER_KINDS
from services.agent.targets import GATEWAY_ROW_LIMIT, EngineTarget, in_pod, make_server
from tests.certificates import Authority, Signed
from tests.collectors.secured import secured
from tests.collectors.serving.engines.pages_at_hand import page_of
from tests.collectors.serving.engines.test_triton_grpc import Statistics, model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from collectors.serving.collector import Visit
    from collectors.serving.gateway import GatewayVisit

TOKEN = "a-token-of-the-servers"


class Pages(BaseHTTPRequestHandler):
    """Servers of several kinds behind one port, for whoever has the token; notes what it was asked."""

    asked: list[str]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        pages = {
            "/vllm": page_of("vllm/0.33.0-dp2-lora-spec.prom"),
            "/version": '{"version": "0.33.0"}',
            "/envoy": page_of("envoy_ai_gateway/1.1.prom").replace("x_tenant_id=", "x_team="),
            "/trtllm": page_of("trtllm/serve-metrics.json"),
            "/llamacpp": page_of("llamacpp/2026.prom"),
        }
        self.asked.append(self.path)
        status = 200 if self.headers.get("Authorization") == f"Bearer {TOKEN}" else 401
        if parts.path == "/llamacpp" and parse_qs(parts.query) != {"model": ["a b&c"]}:
            status = 400
        body = pages[parts.path].encode() if status == 200 else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def client(authority: Authority) -> Signed:
    return authority.sign("agent")


@pytest.fixture(scope="module")
def pages(authority: Authority) -> Iterator[str]:
    """A server that asks for a token and for a client's certificate."""
    with secured(type("Asked", (Pages,), {"asked": []}), authority.sign("pages"), authority.file) as address:
        yield address


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(TOKEN)
    return tmp_path / "token"


def visit(kind: str, url: str, tls: tuple[Authority, Signed], **told: Any) -> Visit | GatewayVisit:
    authority, own = tls
    files = {"ca": authority.file, "certificate": own.certificate, "key": own.key}
    target = EngineTarget(AgentEngine(kind, url, "s", **{name: str(value) for name, value in (files | told).items()}))
    try:
        return target.collect().visit
    finally:
        target.close()


def test_a_certificate_and_a_token_reach_every_kind_of_page(
    pages: str, authority: Authority, client: Signed, token_file: Path
) -> None:
    tls = authority, client
    found: Any = visit("vllm", f"{pages}/vllm", tls, token_file=token_file)
    assert {row.engine_version for row in found.totals.samples} == {"0.33.0"}, "the question for the version too"
    found = visit("envoy_ai_gateway", f"{pages}/envoy", tls, token_file=token_file, tenant_label="x_team")
    assert {row.tenant for row in found.totals.samples} == {"risk", "support"}
    found = visit("trtllm_json", f"{pages}/trtllm", tls, token_file=token_file, model="m")
    assert [(row.server, row.model) for row in found.totals.samples] == [("s", "m")]


def test_trap_34_a_router_is_asked_for_the_page_of_one_model(
    pages: str, authority: Authority, client: Signed, token_file: Path
) -> None:
    tls, url = (authority, client), f"{pages}/llamacpp"
    found: Any = visit("llamacpp", url, tls, token_file=token_file, query_model="a b&c")
    assert {(row.server, row.model) for row in found.totals.samples} == {("s", "a b&c")}
    found = visit("llamacpp", url, tls, token_file=token_file, query_model="a b&c", model="named")
    assert {row.model for row in found.totals.samples} == {"named"}
    with pytest.raises(PageError, match=rf"^{url}: HTTP 400"):
        visit("llamacpp", url, tls, token_file=token_file)


def test_without_the_certificate_there_is_no_page(pages: str, authority: Authority, token_file: Path) -> None:
    engine = AgentEngine("vllm", f"{pages}/vllm", ca=str(authority.file), token_file=str(token_file))
    with pytest.raises(PageError) as error:
        EngineTarget(engine).collect()
    assert TOKEN not in str(error.value)


@pytest.fixture
def triton(authority: Authority) -> Iterator[str]:
    """Triton's gRPC over TLS, which asks for a client's certificate."""
    own = authority.sign("triton")
    handler = Statistics()
    handler.models = [model("ocr", 100, 3, {1: 10, 9: 10})]
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((handler,))
    pair = (own.key.read_bytes(), own.certificate.read_bytes())
    credentials = grpc.ssl_server_credentials([pair], authority.file.read_bytes(), require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    yield f"grpcs://localhost:{port}"
    server.stop(None).wait()


def test_triton_is_asked_by_grpc_over_tls(
    triton: str, authority: Authority, client: Signed, token_file: Path, tmp_path: Path
) -> None:
    found: Any = visit("triton_grpc", triton, (authority, client), token_file=token_file)
    assert [(row.server, row.requests_finished) for row in found.totals.samples] == [("s", 100)]
    stranger = Authority(tmp_path / "other", "other")
    with pytest.raises(PageError, match="UNAVAILABLE, its certificate is not trusted"):
        visit("triton_grpc", triton, (stranger, client))
    with pytest.raises(PageError, match="UNAVAILABLE"):
        EngineTarget(AgentEngine("triton_grpc", triton, ca=str(authority.file))).collect()


def test_a_connection_by_grpc_takes_certificates_that_were_replaced(
    triton: str, authority: Authority, client: Signed, tmp_path: Path
) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(Authority(tmp_path / "other", "other").file.read_bytes())
    engine = AgentEngine(
        "triton_grpc", triton, ca=str(ca), certificate=str(client.certificate), key=str(client.key)
    )  # fmt: skip
    target = EngineTarget(engine)
    with pytest.raises(PageError):
        target.collect()
    ca.write_bytes(authority.file.read_bytes())
    assert target.collect().visit.totals.samples
    target.close()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_files_that_hold_no_certificate_are_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content:
        file.write_text(content)
    with pytest.raises(PageError, match=rf"^{file}: (No such file|holds nothing in PEM)"):
        EngineTarget(AgentEngine("triton_grpc", "grpcs://localhost:1", ca=str(file))).collect()


@pytest.mark.parametrize("kind", SERVER_KINDS)
def test_every_kind_can_be_told_all_that_it_knows(kind: str) -> None:
    told: dict[str, Any] = {"model": "m", "role": "decode", "query_model": "q", "tenant_label": "x"}
    url = "grpcs://h:1" if kind == "triton_grpc" else "https://h:1/m"
    known = {name: value for name, value in told.items() if name in KIND_OPTIONS[kind]}
    server: Any = make_server(AgentEngine(kind, url, "s", ca="/c", certificate="/d", key="/k", **known), "token")
    assert "tenant_label" not in known or server._row_limit == GATEWAY_ROW_LIMIT
    server.close()


def test_a_pod_is_visited_with_the_certificate_of_pods_and_never_with_a_token() -> None:
    told = AgentKubernetes(pod_ca="/ca", pod_certificate="/c", pod_key="/k", token_file="/t", api="https://api")
    found = FoundServer("vllm", "https://10.0.0.7:8000/metrics", "ml/llama", "ml/llama-1", "uid-1", "m", "prefill")
    target = in_pod(found, told, 7)
    engine = target.engine
    assert (engine.ca, engine.certificate, engine.key, engine.token_file) == ("/ca", "/c", "/k", "")
    assert (engine.name, engine.model, engine.role) == ("ml/llama", "m", "prefill")
    assert (target.key, target.collector, target.pod, target.began_second) == (
        "pod:uid-1",
        "pod:ml/llama-1",
        "llama-1",
        7,
    )
    plain = in_pod(FoundServer("triton_grpc", "grpc://10.0.0.7:8001", "ml/t", "ml/t-1", "uid-2"), told).engine
    assert (plain.ca, plain.certificate) == ("", "")
