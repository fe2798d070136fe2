"""Who is believed: certificates and tokens on real connections; a mistake costs the agent patience, not data."""

from __future__ import annotations

import os
import ssl
import time
import urllib.request
from typing import TYPE_CHECKING

import grpc
import pytest

from fleet.errors import ConfigError
from fleet.hub_config import Hub as HubConfig
from services.hub.identity import Identity, Peer, TokenFile, peer_of
from services.hub.settings import hub_settings
from tests.certificates import Authority
from tests.program import gputally, refusal
from tests.services.hub.hubs import Hub, rows, running, wait_until, workspace
from tests.services.hub.sender import LATER, STORED, make_batch, pushing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN, FLEET_TOKEN, NEW_TOKEN = "token-of-node-n1-0", "token-of-the-fleet-0", "another-token-of-n1"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "fleet-ca")


@pytest.fixture(scope="module")
def tls_hub(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    certificate, key = authority.sign("hub", "hub.example")
    folder = tmp_path_factory.mktemp("tls") / "ws"
    with running(folder, tls_certificate=certificate, tls_key=key, client_ca=authority.file, metrics_tls=True) as hub:
        assert hub.mode == "TLS, client certificate"
        yield hub


def client(authority: Authority, certificate: Path, key: Path) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(authority.file.read_bytes(), key.read_bytes(), certificate.read_bytes())


@pytest.mark.parametrize(("common_name", "dns_names"), [("n1", ()), ("gpu-agent", ("other", "n1"))], ids=["CN", "SAN"])
def test_a_certificate_that_names_the_node_is_believed(
    tls_hub: Hub, authority: Authority, common_name: str, dns_names: tuple[str, ...]
) -> None:
    credentials = client(authority, *authority.sign(common_name, *dns_names))
    with pushing(tls_hub.address, credentials, name="hub.example") as stream:
        assert stream.push(make_batch("n1", 1)) == [(1, STORED, "")]


def test_a_certificate_of_another_node_waits(tls_hub: Hub, authority: Authority) -> None:
    credentials = client(authority, *authority.sign("n2", "n2.example"))
    with pushing(tls_hub.address, credentials, name="hub.example") as stream:
        answers = stream.push(make_batch("n1", 8), make_batch("N2", 1), make_batch("*", 2), make_batch("n2", 3))
        assert answers == [(1, LATER, "identity"), (2, LATER, "identity"), (3, STORED, ""), (8, LATER, "identity")]
    told = [line for line in tls_hub.log if "batches are not taken" in line]
    assert len(told) == 1, "once for each stream and reason"
    assert "node=n1 reason=identity" in told[0]
    nodes = rows(tls_hub.folder, "SELECT DISTINCT node FROM lake.ingest_batch WHERE node <> 'n1'")
    assert nodes == [("n2",)]


def test_a_certificate_of_another_authority_or_none_gets_no_connection(
    tls_hub: Hub, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger", "stranger-ca")
    certificate, key = stranger.sign("n1", "n1")
    for credentials in (
        client(authority, certificate, key),
        grpc.ssl_channel_credentials(authority.file.read_bytes()),
        None,
    ):
        with pushing(tls_hub.address, credentials, name="hub.example") as stream:
            stream.send(make_batch("n1", 9))
            assert stream.has_ended()
            assert stream.call.code() == grpc.StatusCode.UNAVAILABLE
    assert rows(tls_hub.folder, "SELECT count(*) FROM lake.ingest_batch WHERE first_sequence = 9") == [(0,)]


def test_the_metrics_page_may_use_the_same_certificate(tls_hub: Hub, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=str(authority.file))
    with urllib.request.urlopen(f"https://{tls_hub.pages}/healthz", timeout=10, context=context) as answer:
        assert answer.read() == b"ok\n"


def test_tokens_on_a_real_hub(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"# the fleet's tokens\nn1 {TOKEN}\n* {FLEET_TOKEN}\n")
    with running(tmp_path / "ws", token_file=tokens) as hub:
        assert hub.mode == "no TLS, token"
        with pushing(hub.address, token=TOKEN) as stream:
            assert stream.push(make_batch("n1", 1), make_batch("n2", 2)) == [(1, STORED, ""), (2, LATER, "identity")]
            # The token is replaced while the stream is open: the next batch on it is judged anew.
            tokens.write_text(f"n1 {NEW_TOKEN}\n")
            wait_until(lambda: stream.push(make_batch("n1", 1)) == [(1, LATER, "identity")])
        with pushing(hub.address, token=NEW_TOKEN) as stream:
            assert stream.push(make_batch("n1", 3)) == [(3, STORED, "")]
        for token in (None, "", FLEET_TOKEN, TOKEN):
            with pushing(hub.address, token=token) as stream:
                assert stream.push(make_batch("n1", 4)) == [(4, LATER, "identity")]
        assert hub.metric('gputally_hub_refused_batches_total{reason="identity"}') >= 5
        hub.stop()
        assert not [line for line in hub.log if "token-of" in line or NEW_TOKEN in line]


def test_a_token_file_is_read_line_by_line_and_its_mistakes_tell_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"n1 {TOKEN}\n\nn1 {NEW_TOKEN}\nn2 short-secret\nn3 {TOKEN} {TOKEN}\n")
    file = TokenFile(path)
    assert [file.allows("n1", token) for token in (TOKEN, NEW_TOKEN, FLEET_TOKEN, "")] == [True, True, False, False]
    assert not file.allows("n2", "short-secret")
    assert not file.allows("n3", TOKEN)
    assert [record.__dict__["line"] for record in caplog.records] == [4, 5]
    assert "secret" not in caplog.text


def test_a_token_file_that_vanishes_keeps_its_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.hub.identity.LOOK_AGAIN_SECONDS", 0.0)
    path = tmp_path / "tokens"
    path.write_text(f"n1 {TOKEN}\n")
    file = TokenFile(path)
    path.unlink()
    assert file.allows("n1", TOKEN)
    path.write_text(f"n1 {NEW_TOKEN}\n")
    assert not file.allows("n1", TOKEN)
    assert file.allows("n1", NEW_TOKEN)


@pytest.mark.parametrize(
    ("metadata", "token"),
    [
        ([("authorization", "Bearer abc")], "abc"),
        ([("authorization", "bearer  abc ")], "abc"),
        ([("authorization", "Basic abc")], ""),
        ([("authorization", "abc")], ""),
        ([("authorization", "Bearer a"), ("authorization", "Bearer b")], ""),
        ([("authorization-bin", b"Bearer abc")], ""),
        ([], ""),
    ],
)
def test_the_token_of_a_call(metadata: list[tuple[str, object]], token: str) -> None:
    assert peer_of({}, metadata) == Peer(frozenset(), token)


def test_everything_asked_for_must_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"n1 {TOKEN}\n")
    both = Identity(by_certificate=True, tokens=TokenFile(path))
    named = frozenset({"n1"})
    assert both.allows(Peer(named, TOKEN), "n1")
    assert not both.allows(Peer(named, ""), "n1")
    assert not both.allows(Peer(frozenset(), TOKEN), "n1")
    assert Identity(by_certificate=False, tokens=None).allows(Peer(), "n1")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listen": "0.0.0.0:9470"}, "is not a loopback address and hub.tls_certificate is not set"),
        ({"listen": "hub.example:9470"}, "is not a loopback address"),
        ({"listen": "0.0.0.0:9470", "token_file": "f"}, "tokens included, could be read on the way"),
        (
            {"listen": "0.0.0.0:9470", "tls_certificate": "f", "tls_key": "f"},
            "neither hub.client_ca nor hub.token_file",
        ),
        ({"tls_certificate": "gone", "tls_key": "f"}, "hub.tls_certificate: there is no file"),
    ],
)
def test_an_open_hub_is_refused(tmp_path: Path, settings: dict[str, str], message: str) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(ConfigError, match=message):
        hub_settings(tmp_path, HubConfig(**settings))


@pytest.mark.parametrize("listen", ["127.0.0.1:1", "[::1]:1", "localhost:1", "127.8.9.1:1"])
def test_loopback_needs_nothing(tmp_path: Path, listen: str) -> None:
    assert hub_settings(tmp_path, HubConfig(listen=listen)).mode == "no TLS, agents are not authenticated"


def test_insecure_is_a_word_one_has_to_say(tmp_path: Path) -> None:
    assert hub_settings(tmp_path, HubConfig(listen="0.0.0.0:1", insecure=True)).listen == ("0.0.0.0", 1)


def test_a_certificate_that_is_none_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("not a certificate")
    folder = workspace(tmp_path / "ws", tls_certificate=tmp_path / "x.pem", tls_key=tmp_path / "x.pem")
    assert refusal(gputally("-C", folder, "hub")).startswith("hub.tls_certificate, tls_key or client_ca cannot be used")


def test_judging_a_token_reads_no_file_each_time(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"n1 {TOKEN}\n")
    file = TokenFile(path)
    path.write_text(f"n1 {NEW_TOKEN}\n")
    os.utime(path, ns=(time.time_ns(), time.time_ns()))
    assert file.allows("n1", TOKEN), "within a second the file is not looked at again"
