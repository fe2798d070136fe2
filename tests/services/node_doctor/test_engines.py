"""The doctor of a node and its model servers: what is in the way is named, with the key that helps, and no secret."""

from __future__ import annotations

import socket
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest

from fleet.agent_config import Agent
from fleet.agent_engine_config import AgentEngine, AgentKubernetes
from services.agent.doctor import engines as doctor_of_engines
from tests.certificates import Authority, Signed
from tests.collectors.secured import secured
from tests.collectors.serving.engines.pages_at_hand import page_of
from tests.collectors.serving.kubernetes_api import NODE, Api, kubernetes_api, pod
from tests.collectors.serving.live_engine import LiveEngine, own_address

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from services.finding import Finding

TOKEN = "a-token-of-the-servers"


def told(*engines: AgentEngine) -> list[Finding]:
    return list(doctor_of_engines.configured(Agent(engines=engines)))


def only(kind: str, url: str, **options: Any) -> Finding:
    (found,) = told(AgentEngine(kind, url, "s", **{name: str(value) for name, value in options.items()}))
    assert found.subject == "engine s"
    return found


class Secured(BaseHTTPRequestHandler):
    """A page for whoever has the token."""

    def do_GET(self) -> None:
        is_known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        body = page_of("litellm/1.110.2.prom").encode() if is_known else b""
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def client(authority: Authority) -> Signed:
    return authority.sign("agent")


@pytest.fixture(scope="module")
def page(authority: Authority) -> Iterator[str]:
    """Asks for a token and a certificate."""
    with secured(Secured, authority.sign("page"), authority.file) as address:
        yield f"{address}/metrics"


@pytest.fixture
def api(authority: Authority, tmp_path: Path) -> Iterator[Api]:
    with kubernetes_api(authority, tmp_path) as found:
        yield found


def test_a_server_that_answers_says_its_version() -> None:
    with LiveEngine() as engine:
        found = only("vllm", engine.url)
    assert (found.level, found.message) == ("ok", f"vllm at {engine.url} answers: version 0.33.0, models named: 1")


def test_what_a_page_lacks_is_named() -> None:
    with LiveEngine(page='vllm:num_requests_running{model_name="m"} NaN\n') as engine:
        answers, lacks, doubt = told(AgentEngine("vllm", engine.url))
    assert (answers.level, lacks.level, doubt.level) == ("ok", "warn", "warn")
    assert "lacks what a server of its kind always has: " in lacks.message
    assert doubt.message == "values that cannot be believed, by reason: 1 not_finite"


def test_a_server_of_another_kind_is_suspected() -> None:
    with LiveEngine() as engine:
        found = only("tgi", engine.url)
    assert (found.level, "is it of another kind" in found.message) == ("fail", True)


def test_each_fault_of_tls_and_token_names_the_key_that_helps(
    page: str, authority: Authority, client: Signed, tmp_path: Path
) -> None:
    token, wrong = tmp_path / "token", tmp_path / "wrong"
    token.write_text(TOKEN)
    wrong.write_text(f"{TOKEN}-of-another")
    own = {"ca": authority.file, "certificate": client.certificate, "key": client.key}
    stranger = Authority(tmp_path / "other", "other").file
    cases = [
        ({}, "fail", "its certificate is not trusted", "agent.engines[0].ca names who signs it"),
        (own | {"ca": stranger}, "fail", "its certificate is not trusted", "agent.engines[0].ca names who signs it"),
        ({"ca": authority.file}, "fail", page, "agent.engines[0].certificate"),
        (own, "fail", "HTTP 401", "it wants a token, or another one: agent.engines[0].token_file"),
        (own | {"token_file": wrong}, "fail", "HTTP 401", "agent.engines[0].token_file"),
        (own | {"token_file": tmp_path / "none"}, "fail", f"{tmp_path}/none", "No such file or directory"),
        (own | {"token_file": token}, "ok", page, "answers: models named: 1"),
    ]
    for options, level, first, second in cases:
        found = only("litellm", page, **options)
        assert (found.level, first in found.message, second in found.message) == (level, True, True), found
        assert TOKEN not in found.message


def test_nobody_there() -> None:
    for kind, url in (("vllm", "http://127.0.0.1:1/metrics"), ("trtllm_json", "http://127.0.0.1:1/metrics")):
        found = only(kind, url)
        assert (found.level, "Connection refused; is it up" in found.message) == ("fail", True)
    assert only("triton_grpc", "grpc://127.0.0.1:1").level == "fail"


def test_a_page_whose_rows_reading_takes_is_left_to_the_agent() -> None:
    with LiveEngine() as engine:
        found = only("trtllm_json", engine.url)
        assert engine.values == []
    assert (found.level, "not read, as that would take its rows" in found.message) == ("ok", True)


def test_servers_that_hang_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_of_engines, "VISIT_SECONDS", 1.5)
    with socket.create_server(("127.0.0.1", 0)) as silent, LiveEngine() as well:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/metrics"
        hanging = [AgentEngine("vllm", url, f"s{number}") for number in range(5)]
        began = time.monotonic()
        found = told(*hanging, AgentEngine("vllm", well.url))
    assert time.monotonic() - began < 5
    assert [each.level for each in found] == ["fail"] * 5 + ["ok"]
    assert "no answer within 1.5 seconds" in found[0].message


def listed(api: Api, **options: Any) -> list[Finding]:
    files = {"ca": str(api.ca), "token_file": str(api.token_file)}
    kubernetes = AgentKubernetes(**{"discover": True, "api": api.address, **files, **options})
    found = list(doctor_of_engines.in_pods(Agent(kubernetes=kubernetes), NODE))
    assert "s3cret" not in "".join(each.message for each in found)
    return found


def test_discovery_that_is_not_asked_for_asks_nobody(api: Api) -> None:
    (found,) = listed(api, discover=False)
    assert (found.level, api.asked) == ("ok", [])


def test_pods_are_counted_by_why_they_are_refused_and_those_found_are_visited(api: Api) -> None:
    with LiveEngine(host=own_address()) as engine:
        own = {"ip": own_address(), "port": str(engine.port)}
        api.serve(pod(1, **own), pod(2, ip=own_address(), port="1"), pod(3, engine="wllm"), pod(4, port="x"))
        count, refused, well, away = listed(api)
    assert (count.level, count.message.startswith(f"2 model servers in the pods of node {NODE}")) == ("ok", True)
    assert refused.message == "pods that are not visited, by reason: 1 bad_port, 1 unknown_engine"
    assert (well.subject, well.level, away.subject, away.level) == ("pod:ml/pod-1", "ok", "pod:ml/pod-2", "fail")


def test_a_page_of_a_pod_that_wants_a_token_is_told_where_one_can_be_given(
    api: Api, authority: Authority, client: Signed
) -> None:
    with secured(Secured, authority.sign("pod"), authority.file, host=own_address()) as address:
        port = address.rpartition(":")[2]
        api.serve(pod(1, engine="litellm", ip=own_address(), port=port, scheme="https"))
        _, found = listed(
            api, pod_ca=str(authority.file), pod_certificate=str(client.certificate), pod_key=str(client.key)
        )
    assert (found.level, found.subject) == ("fail", "pod:ml/pod-1")
    assert "agent.kubernetes.pod_ca" in found.message or "none is sent to a pod" in found.message


@pytest.mark.parametrize(
    ("status", "hint"),
    [(403, "lets the agent's service account list pods"), (401, "is the token_file of this cluster?")],
)
def test_an_api_that_refuses_names_the_right_that_is_missing(api: Api, status: int, hint: str) -> None:
    api.status = status
    (found,) = listed(api)
    assert (found.level, f"HTTP {status}" in found.message, hint in found.message) == ("fail", True, True)


def test_an_api_that_nobody_known_signed_and_none_at_all(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (found,) = listed(api, ca=str(Authority(tmp_path, "other").file))
    assert "agent.kubernetes.ca names who signs it" in found.message
    (found,) = listed(api, token_file=str(tmp_path / "gone"))
    assert "automountServiceAccountToken: true" in found.message
    (found,) = doctor_of_engines.in_pods(Agent(kubernetes=AgentKubernetes(discover=True)), NODE)
    assert (found.level, "this is no pod in Kubernetes" in found.message) == ("fail", True)


def test_an_api_that_hangs_is_left(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_of_engines, "LISTING_SECONDS", 0.2)
    api.hang_seconds = 1
    api.serve(pod(1))
    (found,) = listed(api)
    assert (found.level, "no answer within 0.2 seconds" in found.message) == ("fail", True)
