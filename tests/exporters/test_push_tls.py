"""The way to the hub is guarded: certificates on both sides, tokens, and all of them renewed while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest

from tests.certificates import Authority, Signed
from tests.exporters.hub import Hub, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.exporters.agent import Agent


def credentials(signed: Signed, client_ca: Path | None = None) -> grpc.ServerCredentials:
    pairs = [(signed.key.read_bytes(), signed.certificate.read_bytes())]
    roots = client_ca.read_bytes() if client_ca else None
    return grpc.ssl_server_credentials(pairs, roots, require_client_auth=client_ca is not None)


def start(agent: Agent, hub: Hub, **settings: Any) -> None:
    agent.append()
    agent.start(hub.port, **settings)


def failed(agent: Agent, *reasons: str) -> None:
    """It failed for one of the reasons, and the batch is still there."""
    names = {f"failed_events_total:{reason}" for reason in reasons}
    until(lambda: names & agent.counts().keys())
    assert agent.counts()["spooled_batches"] == 1


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_tls_with_the_right_authority(agent: Agent, new_hub: Callable[..., Hub], authority: Authority) -> None:
    hub = new_hub(credentials=credentials(authority.sign("hub")))
    start(agent, hub, ca=str(authority.file))
    until(lambda: hub.stored)


def test_another_authority_is_refused(
    agent: Agent, new_hub: Callable[..., Hub], authority: Authority, tmp_path: Path
) -> None:
    hub = new_hub(credentials=credentials(authority.sign("hub")))
    start(agent, hub, ca=str(Authority(tmp_path, "another").file))
    failed(agent, "tls")
    assert not hub.received


def test_a_certificate_of_another_host_is_refused_unless_named(
    agent: Agent, new_hub: Callable[..., Hub], authority: Authority
) -> None:
    hub = new_hub(credentials=credentials(authority.sign("hub", "hub.example")))
    start(agent, hub, ca=str(authority.file), server_name="other.example")
    failed(agent, "tls")
    agent.push.stop(0)
    agent.start(hub.port, ca=str(authority.file), server_name="hub.example")
    until(lambda: hub.stored)


def test_a_hub_without_tls_gets_nothing(agent: Agent, new_hub: Callable[..., Hub], authority: Authority) -> None:
    hub = new_hub()
    start(agent, hub, ca=str(authority.file))
    failed(agent, "tls", "unavailable")
    assert not hub.metadata


def test_the_agents_certificate_is_shown_and_renewed(
    agent: Agent, new_hub: Callable[..., Hub], authority: Authority, tmp_path: Path
) -> None:
    hub = new_hub(credentials=credentials(authority.sign("hub"), client_ca=authority.file))
    stranger = Authority(tmp_path, "stranger").sign("node")
    start(agent, hub, ca=str(authority.file), certificate=str(stranger.certificate), key=str(stranger.key))
    failed(agent, "tls", "unavailable")
    assert not hub.received
    renewed = authority.sign("node")  # the same files
    assert (renewed.certificate, renewed.key) == (stranger.certificate, stranger.key)
    until(lambda: hub.stored)


def test_without_the_certificate_that_a_hub_asks_for(
    agent: Agent, new_hub: Callable[..., Hub], authority: Authority
) -> None:
    hub = new_hub(credentials=credentials(authority.sign("hub"), client_ca=authority.file))
    start(agent, hub, ca=str(authority.file))
    failed(agent, "tls", "unavailable")
    assert not hub.received


def test_a_token_goes_along_and_is_read_again(
    agent: Agent, new_hub: Callable[..., Hub], authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub = new_hub(credentials=credentials(authority.sign("hub")), token="new-secret")
    (tmp_path / "token").write_text("old-secret\n")
    start(agent, hub, ca=str(authority.file), token_file=str(tmp_path / "token"))
    failed(agent, "identity")
    (tmp_path / "token").write_text("new-secret\n")
    until(lambda: hub.stored)
    assert "secret" not in "".join(str(vars(record)) for record in caplog.records)


@pytest.mark.parametrize("content", [None, b"", b"two\nlines", b"\xff\xfe", b"sp\0ace", b"t\xc3\xb6ken"])
def test_a_token_file_that_holds_no_token_is_a_reason_and_not_a_crash(
    agent: Agent, new_hub: Callable[..., Hub], tmp_path: Path, content: bytes | None
) -> None:
    hub = new_hub()
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    agent.append()
    agent.start(hub.port, token_file=str(tmp_path / "token"))
    failed(agent, "token")
    (tmp_path / "token").write_bytes(b"token")
    until(lambda: hub.stored)
    assert hub.metadata[-1]["authorization"] == "Bearer token"


@pytest.mark.parametrize("content", [None, b"", b"no certificate\n"])
def test_an_authority_file_that_holds_none_is_a_reason_and_not_a_crash(
    agent: Agent, new_hub: Callable[..., Hub], authority: Authority, tmp_path: Path, content: bytes | None
) -> None:
    hub = new_hub(credentials=credentials(authority.sign("hub")))
    if content is not None:
        (tmp_path / "ca").write_bytes(content)
    start(agent, hub, ca=str(tmp_path / "ca"))
    failed(agent, "tls", "unavailable")
    (tmp_path / "ca").write_bytes(authority.file.read_bytes())
    until(lambda: hub.stored)
