"""The doctor of a node and a real hub: the first thing in the way is named, no row is sent, no secret is shown."""

from __future__ import annotations

import http.server
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from fleet.agent_config import Agent, AgentHub
from services.agent.doctor import hub as doctor_of_hub
from tests.certificates import Authority
from tests.services.hub import hubs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from services.finding import Finding

TOKEN = "a-token-of-this-fleet-0123456789"


def told(address: str, **settings: Any) -> list[Finding]:
    texts = {name: value if isinstance(value, bool) else str(value) for name, value in settings.items()}
    return list(doctor_of_hub.look(Agent(hub=AgentHub(address=address, **texts))))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "fleet", datetime.now(UTC) + timedelta(days=1))


@pytest.fixture(scope="module")
def hub(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[hubs.Hub]:
    """A hub that wants certificates and tokens."""
    folder = tmp_path_factory.mktemp("hub")
    (folder / "tokens").write_text(f"* {TOKEN}\n")
    certificate, key = authority.sign("hub", "localhost")
    settings = {"tls_certificate": certificate, "tls_key": key, "client_ca": authority.file, "token_file": "tokens"}
    with hubs.running(folder / "ws", **settings | {"token_file": folder / "tokens"}) as running:
        yield running


def test_no_hub_is_fine() -> None:
    (found,) = doctor_of_hub.look(Agent())
    assert found.level == "ok"


def test_a_hub_that_answers_is_named_by_its_certificate(hub: hubs.Hub, authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.sign("gpu-1", "gpu-1")
    (tmp_path / "token").write_text(TOKEN)
    found = told(hub.address, ca=authority.file, certificate=certificate, key=key, token_file=tmp_path / "token")
    # The authority of these tests signs for a day.
    assert [(each.level, each.subject) for each in found] == [("warn", "hub"), ("ok", "hub")]
    assert "certificate of localhost, hub valid for 1 days: renew it" in found[0].message
    assert "it answers" in found[1].message
    assert TOKEN not in "".join(each.message for each in found)
    assert hub.metric("gputally_hub_received_batches_total") == 0


def test_a_hub_that_wants_a_certificate_and_gets_none(hub: hubs.Hub, authority: Authority) -> None:
    assert "it does not take a stream" in told(hub.address, ca=authority.file)[-1].message


def test_a_hub_signed_by_somebody_else(hub: hubs.Hub, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger", "stranger")
    (found,) = told(hub.address, ca=stranger.file)
    assert (found.level, "its certificate is not believed" in found.message) == ("fail", True)


def test_a_hub_without_tls_where_tls_is_asked_for(authority: Authority, tmp_path: Path) -> None:
    with hubs.running(tmp_path / "plain") as plain:
        assert [each.level for each in told(plain.address)] == ["ok", "ok"]
        warned, answered = told(plain.address, insecure=True)
        assert (warned.level, "can be read on the way" in warned.message, answered.level) == ("warn", True, "ok")
        (found,) = told(plain.address, ca=authority.file)
    assert (found.level, "no TLS" in found.message) == ("fail", True)


def test_nobody_there() -> None:
    (found,) = told("127.0.0.1:1")
    assert (found.level, "cannot be reached: Connection refused" in found.message) == ("fail", True)


def test_something_else_there() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        found = told(f"127.0.0.1:{server.server_address[1]}")
    finally:
        server.shutdown()
        server.server_close()
    assert (found[-1].level, "it does not take a stream" in found[-1].message) == ("fail", True)


@pytest.mark.parametrize("content", [None, "", "two\nlines \x07"], ids=["absent", "empty", "no token"])
def test_a_token_file_that_cannot_be_used(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    (found,) = told("127.0.0.1:1", token_file=path)
    assert (found.level, str(path) in found.message) == ("fail", True)


def test_certificates_that_would_not_be_used(tmp_path: Path) -> None:
    (found,) = told("127.0.0.1:1", ca=tmp_path / "ca", insecure=True)
    assert (found.level, "certificates have no use without TLS" in found.message) == ("fail", True)
