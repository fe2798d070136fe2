"""The page over real sockets: what is answered, and who may see it."""

from __future__ import annotations

import gzip
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from exporters.node import CONTENT_TYPE
from exporters.page_server import PageSettings
from fleet.errors import ConfigError
from tests.certificates import Authority
from tests.exporters.site import PAGE, Site, ask, trusting

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_and_its_type(site: Site) -> None:
    answer = ask(site.start())
    assert (answer.status, answer.body) == (200, PAGE)
    assert answer.headers["Content-Type"] == CONTENT_TYPE
    assert answer.headers["Server"] == "gputally"


def test_a_query_changes_nothing(site: Site) -> None:
    assert ask(site.start(), "/metrics?name[]=x&collect=all").body == PAGE


@pytest.mark.parametrize("offer", ["gzip", "deflate, GZIP;q=1.0", "br;q=1.0, gzip;q=0.8, *;q=0.1"])
def test_gzip_for_whoever_takes_it(site: Site, offer: str) -> None:
    answer = ask(site.start(), Accept_Encoding=offer)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.body) == PAGE


@pytest.mark.parametrize("offer", ["", "identity", "gzip;q=0", "gzip; q=0.0", "xgzip"])
def test_plain_for_whoever_does_not(site: Site, offer: str) -> None:
    answer = ask(site.start(), Accept_Encoding=offer)
    assert "Content-Encoding" not in answer.headers
    assert answer.body == PAGE


def test_head_is_the_same_without_the_body(site: Site) -> None:
    answer = ask(site.start(), method="HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Content-Length"] == str(len(PAGE))


@pytest.mark.parametrize("path", ["/", "/metrics/", "/metrics/../healthz", "/favicon.ico", "/x" * 2_000])
def test_other_paths_are_not_there(site: Site, path: str) -> None:
    assert ask(site.start(), path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "<script>"])
def test_other_methods_are_refused(site: Site, method: str) -> None:
    answer = ask(site.start(), method=method)
    assert answer.status == 501
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_states_are_told_in_words_on_one_line(site: Site) -> None:
    server = site.start()
    assert ask(server, "/healthz").body == b"ok\n"
    site.health = (False, "no tick for 130 seconds")
    site.ready = (False, "line\nline " + "x" * 10_000)
    answer = ask(server, "/healthz")
    assert (answer.status, answer.body) == (503, b"no tick for 130 seconds\n")
    answer = ask(server, "/readyz")
    assert answer.status == 503
    assert answer.body.count(b"\n") == 1
    assert len(answer.body) < 300


def test_a_page_that_fails_is_an_error_and_not_the_end(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    server = site.start()
    site.page = RuntimeError("a secret detail")
    answer = ask(server)
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert "could not be rendered" in caplog.text
    site.page = PAGE
    assert ask(server).status == 200


def test_a_token_is_needed_for_the_page_only_and_may_be_renewed(site: Site, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\nsecond\n")
    server = site.start(token_file=token)
    for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic first"}, {"Authorization": "first"}):
        answer = ask(server, **given)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert b"first" not in answer.body
    assert ask(server, Authorization="Bearer first").status == 200
    assert ask(server, Authorization="bearer  second").status == 200
    assert ask(server, "/healthz").status == ask(server, "/readyz").status == 200
    token.write_text("third\n")
    assert ask(server, Authorization="Bearer first").status == 401
    assert ask(server, Authorization="Bearer third").status == 200
    token.write_text("\n")  # half-written: the old one stays
    assert ask(server, Authorization="Bearer third").status == 200
    assert ask(server, Authorization="Bearer ").status == 401


def test_ipv6_and_every_address(site: Site) -> None:
    assert ask(site.start("[::1]:0"), host="::1").body == PAGE
    everywhere = site.start(":0")
    assert ask(everywhere, host="::1").body == ask(everywhere, host="127.0.0.1").body == PAGE


def test_tls_with_a_certificate_that_is_renewed(site: Site, tmp_path: Path) -> None:
    signed = Authority(tmp_path, "old").sign("page")
    server = site.start(tls_certificate=signed.certificate, tls_key=signed.key)
    old = trusting(Authority(tmp_path, "unused"))
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(server, tls=old)
    new = Authority(tmp_path, "new")
    new.sign("page")  # into the same files
    assert ask(server, tls=trusting(new)).body == PAGE
    signed.key.write_text("half-written")
    assert ask(server, tls=trusting(new)).body == PAGE


def test_a_client_certificate_is_needed_for_the_page_only(site: Site, tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    signed = authority.sign("page")
    server = site.start(tls_certificate=signed.certificate, tls_key=signed.key, client_ca=authority.file)
    assert ask(server, tls=trusting(authority, own=authority.sign("scraper"))).body == PAGE
    assert ask(server, tls=trusting(authority)).status == 403
    assert ask(server, "/healthz", tls=trusting(authority)).status == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(server, "/healthz", tls=trusting(authority, own=other.sign("stranger")))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"listen": "9100"}, "not host:port"),
        ({"listen": "::1:9100"}, "into brackets"),
        ({"listen": "host:65536"}, "not host:port"),
        ({"listen": "host:http"}, "not host:port"),
        ({"listen": ":0", "tls_certificate": "c"}, "go together"),
        ({"listen": ":0", "client_ca": "c"}, "need TLS"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        PageSettings(**settings)


def test_what_cannot_be_had_is_said_at_the_start(site: Site, tmp_path: Path) -> None:
    taken = site.start()
    with pytest.raises(ConfigError, match="cannot listen on"):
        site.start(f"127.0.0.1:{taken.port}")
    with pytest.raises(ConfigError, match="cannot listen on"):
        site.start("no-such-host.invalid:0")
    for content in (None, ""):
        if content is not None:
            (tmp_path / "token").write_text(content)
        with pytest.raises(ConfigError, match="token"):
            site.start(token_file=tmp_path / "token")
    (tmp_path / "bad").write_text("no certificate")
    with pytest.raises(ConfigError, match="bad"):
        site.start(tls_certificate=tmp_path / "bad", tls_key=tmp_path / "bad")
