"""What `[[agent.engines]]` and `[agent.kubernetes]` accept and refuse, kind by kind."""

from __future__ import annotations

import pytest

from collectors.serving.engines import ENGINES, GATEWAYS
from fleet.agent_engine_config import AgentEngine, AgentKubernetes
from fleet.config import parse_config
from fleet.errors import ConfigError
from fleet.serving_kinds import ENGINE_KINDS, GATEWAY_KINDS, KIND_OPTIONS, NEVER_TENANTS, SERVER_KINDS

VALUES = {"model": "m", "role": "decode", "query_model": "q", "tenant_label": "x_team"}


def text_of(kind: str, **told: object) -> str:
    url = "grpcs://triton:8001" if kind == "triton_grpc" else "https://server:8000/metrics"
    lines = [f"{name} = {f'{value!r}'}" for name, value in {"kind": kind, "url": url, **told}.items()]
    return "\n".join(("[[agent.engines]]", *lines))


def why_not(text: str) -> str:
    with pytest.raises(ConfigError) as error:
        parse_config(text)
    return str(error.value).removeprefix("gputally.toml: ")


def test_the_kinds_are_those_that_can_be_read() -> None:
    assert (set(ENGINE_KINDS), set(GATEWAY_KINDS)) == (set(ENGINES), set(GATEWAYS))
    assert set(KIND_OPTIONS) == set(SERVER_KINDS)


@pytest.mark.parametrize("kind", SERVER_KINDS)
def test_each_kind_takes_what_it_knows_and_nothing_else(kind: str) -> None:
    for name, value in VALUES.items():
        text = text_of(kind, **{name: value})
        if name in KIND_OPTIONS[kind]:
            (engine,) = parse_config(text).agent.engines
            assert getattr(engine, name) == value
        else:
            assert why_not(text) == f"agent.engines[0].{name}: has no meaning for the kind {kind}"
    secured = {"ca": "/c", "certificate": "/d", "key": "/k", "token_file": "/t"}
    (engine,) = parse_config(text_of(kind, **secured)).agent.engines
    assert (engine.ca, engine.certificate, engine.key, engine.token_file) == ("/c", "/d", "/k", "/t")


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"kind": "rocm"}, "agent.engines[0].kind: must be one of dynamo, envoy_ai_gateway, "),
        ({"kind": "vllm\x1b[2J"}, "agent.engines[0].kind: must be one of "),
        ({"certificate": "/c"}, "agent.engines[0].key: certificate and key belong together"),
        ({"url": "http://a/m", "ca": "/c"}, "agent.engines[0].ca: has no use without TLS"),
        ({"url": "http://a/m", "certificate": "/c", "key": "/k"}, "agent.engines[0].certificate: has no use"),
        ({"url": "grpc://a:1"}, "agent.engines[0].url: is not the address of a page"),
        ({"url": "http://a/m#x"}, "agent.engines[0].url: may hold no user, password or query"),
        ({"url": "http://a/m\u00e9"}, "agent.engines[0].url: is not the address of a page"),
        ({"url": "http://a /m"}, "agent.engines[0].url: is not the address of a page"),
        ({"kind": "triton_grpc", "url": "https://a/m"}, "agent.engines[0].url: is not the address of Triton's gRPC"),
        ({"kind": "triton_grpc", "url": "grpc://a:1", "token_file": "/t"}, "agent.engines[0].token_file: a token is"),
        ({"kind": "triton_grpc", "url": "grpc://a:1", "ca": "/t"}, "agent.engines[0].ca: has no use without TLS"),
        (
            {"kind": "llamacpp", "url": "http://a/m?model=x"},
            "put a token into token_file; query_model asks for a model",
        ),
        ({"kind": "litellm", "tenant_label": "team name"}, "'team name' cannot be the label of a tenant"),
    ],
)
def test_what_cannot_be_meant_of_a_server_is_refused_with_its_path(told: dict[str, str], why: str) -> None:
    text = text_of(told.pop("kind", "vllm"), **told).replace("'vllm\\x1b[2J'", '"vllm\\u001b[2J"')
    found = why_not(text)
    assert why in found
    assert found.isprintable()


@pytest.mark.parametrize("label", sorted(NEVER_TENANTS))
def test_a_key_of_clients_is_never_the_tenant(label: str) -> None:
    assert "cannot be the label of a tenant" in why_not(text_of("litellm", tenant_label=label))


def test_discovery_is_off_until_it_is_asked_for() -> None:
    assert parse_config("").agent.kubernetes == AgentKubernetes() == AgentKubernetes(discover=False, api="")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("find = true", "unknown key agent.kubernetes.find"),
        ("discover = 'yes'", "agent.kubernetes.discover must be true or false"),
        ("period_seconds = 0", "agent.kubernetes.period_seconds: must be from 1 to 3600"),
        ("pod_period_seconds = 301", "agent.kubernetes.pod_period_seconds: must be from 1 to 300"),
        ("api = '10.0.0.1:443'", "agent.kubernetes.api: is not the address of an API"),
        ("api = 'https://me:pw@10.0.0.1'", "agent.kubernetes.api: may hold no user"),
        ("api = 'http://10.0.0.1'\ntoken_file = '/t'", "agent.kubernetes.token_file: a token is sent to the API over"),
        ("api = 'http://10.0.0.1'\nca = '/t'", "agent.kubernetes.ca: has no use without TLS"),
        ("pod_certificate = '/c'", "agent.kubernetes.pod_key: pod_certificate and pod_key belong together"),
    ],
)
def test_what_cannot_be_meant_of_kubernetes_is_refused_with_its_path(line: str, why: str) -> None:
    assert why in why_not(f"[agent.kubernetes]\n{line}\n")


def test_a_server_has_one_name_whatever_its_kind() -> None:
    assert AgentEngine("triton_grpc", "grpc://triton:8001").name == "triton:8001"
