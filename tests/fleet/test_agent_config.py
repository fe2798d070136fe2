"""What `[agent]` accepts and refuses."""

from __future__ import annotations

import pytest

from fleet.address import split_address
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
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_path(text: str, told: str) -> None:
    text = text.replace("'a\\u0007b'", '"a\\u0007b"')
    with pytest.raises(ConfigError, match=r"(?s).*") as error:
        parse_config(text)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("text", "parts"), [("hub:1", ("hub", 1)), ("[::1]:65535", ("::1", 65535)), ("10.0.0.1:0", ("10.0.0.1", 0))]
)
def test_addresses(text: str, parts: tuple[str, int]) -> None:
    assert split_address(text) == parts


@pytest.mark.parametrize("text", ["", "hub", "hub:", ":1", "hub:65536", "hub:-1", "hub:1e3", "::1:1", "hub:\u0661"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match=r"host:port|brackets"):
        split_address(text)
