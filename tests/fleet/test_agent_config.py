"""What `[agent]` accepts and refuses."""

from __future__ import annotations

from dataclasses import fields

import pytest

from fleet.address import split_address
from fleet.agent_config import AGENT_TEMPLATE
from fleet.agent_engine_config import AgentEngine
from fleet.config import parse_config
from fleet.errors import ConfigError


def test_defaults_need_nothing_written() -> None:
    agent = parse_config("").agent
    assert (agent.cluster, agent.devices, agent.hub.address) == ("default", "nvml", "")
    assert parse_config("[agent]\nnode = 'gpu-1'\n[agent.hub]\naddress = 'hub:1'\n").agent.node == "gpu-1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[agent]\nnodes = 'x'", "unknown key agent.nodes; did you mean agent.node?"),
        ("[agent.hub]\naddress = 'hub'", "agent.hub.address: 'hub' is not host:port"),
        ("[agent.hub]\naddress = '::1:80'", "put an IPv6 address into brackets"),
        ("[agent.page]\nlisten = ':x'", "agent.page.listen"),
        ("[agent.page]\ntls_key = 'k'", "tls_certificate and tls_key belong together"),
        ("[agent.page]\nclient_ca = 'c'", "agent.page.client_ca: needs tls_certificate"),
        ("[agent.hub]\ncertificate = 'c'", "certificate and key belong together"),
        ("[agent]\ndevices = 'dcgm'", "agent.dcgm_url: is needed"),
        ("[agent]\ndevices = 'rocm'", "agent.devices must be one of"),
        ("[agent]\nspool_mebibytes = 0", "agent.spool_mebibytes: must be from 1"),
        ("[agent]\nnode = 'a\\u0007b'", "control character"),
        ("[[agent.engines]]\nkind = 'vllm'", "agent.engines[0].url is missing"),
        ("[[agent.engines]]\nkind = 'vllm'\nurl = 'llm:8000'", "agent.engines[0].url: is not the address of a page"),
        ("[[agent.engines]]\nkind = 'vllm'\nurl = 'http://[::1/x'", "agent.engines[0].url: is not the address"),
        ("[[agent.engines]]\nkind = 'vllm'\nurl = 'http://a:99999/x'", "agent.engines[0].url: is not the address"),
        ("[[agent.engines]]\nkind = 'vllm'\nurl = 'http://me:key@llm/x'", "may hold no user, password or query"),
        ("[[agent.engines]]\nkind = 'vllm'\nurl = 'http://llm/x?key=1'", "may hold no user, password or query"),
        ("[[agent.engines]]\nkind = 'vllm'\nurl = 'http://llm/x'\nperiod_seconds = 0", "must be from 1 to 300"),
        (
            "[[agent.engines]]\nkind = 'vllm'\nurl = 'http://llm/x'\nrole = 'all'",
            "agent.engines[0].role must be one of",
        ),
        (2 * "[[agent.engines]]\nkind = 'vllm'\nurl = 'http://llm/x'\n", "agent.engines: two are called 'llm'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_path(text: str, told: str) -> None:
    text = text.replace("'a\\u0007b'", '"a\\u0007b"')
    with pytest.raises(ConfigError, match=r"(?s).*") as error:
        parse_config(text)
    assert told in str(error.value)


def test_a_model_server_is_called_as_it_is_configured_or_by_its_address() -> None:
    text = "[[agent.engines]]\nkind = 'vllm'\nurl = 'http://llm:8000/metrics'\n"
    (named,) = parse_config(f"{text}server = 'a'\n").agent.engines
    (plain,) = parse_config(text).agent.engines
    assert (named.name, plain.name, plain.period_seconds) == ("a", "llm:8000", 15)
    with pytest.raises(ConfigError, match="are 65, more than 64"):
        parse_config("".join(f"{text}server = 's{n}'\n" for n in range(65)))


def test_what_the_template_shows_of_a_model_server_can_be_used() -> None:
    shown = AGENT_TEMPLATE.partition("# [[agent.engines]]")[2].splitlines()
    lines = [line.removeprefix("# ") for line in shown if line.startswith("# ") and " = " in line]
    (engine,) = parse_config("\n".join(("[[agent.engines]]", *lines))).agent.engines
    assert {line.partition(" = ")[0] for line in lines} == {field.name for field in fields(engine)}
    assert engine == AgentEngine("vllm", "http://127.0.0.1:8000/metrics", "llm-a")


@pytest.mark.parametrize(
    ("text", "parts"), [("hub:1", ("hub", 1)), ("[::1]:65535", ("::1", 65535)), ("10.0.0.1:0", ("10.0.0.1", 0))]
)
def test_addresses(text: str, parts: tuple[str, int]) -> None:
    assert split_address(text) == parts


@pytest.mark.parametrize("text", ["", "hub", "hub:", ":1", "hub:65536", "hub:-1", "hub:1e3", "::1:1", "hub:\u0661"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match=r"host:port|brackets"):
        split_address(text)
