"""Fetching pages over TLS: who is trusted, who may ask, and what wrong certificates say."""

from __future__ import annotations

import socket
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization

from collectors.exposition import PageError
from collectors.http_get import Tls
from collectors.pages import fetch
from tests.certificates import Authority, Signed
from tests.collectors.secured import secured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = b"m 1\n"


class Exporter(BaseHTTPRequestHandler):
    """Answers whoever has the token; `/down` leads to the same host and port without TLS."""

    def do_GET(self) -> None:
        if self.path == "/down":
            self.send_response(301)
            self.send_header("Location", f"http://{self.headers['Host']}/metrics")
        else:
            is_known = self.headers.get("Authorization") == "Bearer s3cret"
            self.send_response(200 if is_known else 401)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def client(authority: Authority) -> Signed:
    return authority.sign("client")


@pytest.fixture(scope="module")
def page(authority: Authority) -> Iterator[str]:
    with secured(Exporter, authority.sign("server")) as address:
        yield f"{address}/metrics"


def why_not(source: str, **options: Any) -> str:
    with pytest.raises(PageError) as error:
        fetch(source, token="s3cret", **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_page_is_read_where_its_authority_is_trusted(page: str, authority: Authority) -> None:
    assert fetch(page, token="s3cret", tls=Tls(ca=authority.file)).text == "m 1\n"


def test_a_server_that_nobody_known_signed_gets_no_token(page: str, tmp_path: Path) -> None:
    line = why_not(page)
    assert line.startswith(f"{page}: its certificate is not trusted: ")
    assert why_not(page, tls=Tls(ca=Authority(tmp_path, "other").file)).startswith(f"{page}: its certificate is not")


def test_a_certificate_for_another_host_is_not_trusted(authority: Authority) -> None:
    with secured(Exporter, authority.sign("named", "gpu-1.example")) as address:
        by_name = address.replace("127.0.0.1", "localhost")
        line = why_not(by_name, tls=Tls(ca=authority.file))
    assert line.startswith(f"{by_name}: its certificate is not trusted: Hostname mismatch")


def test_a_server_that_asks_for_a_certificate_gets_it(authority: Authority, client: Signed) -> None:
    with secured(Exporter, authority.sign("strict"), authority.file) as address:
        tls = Tls(authority.file, client.certificate, client.key)
        assert fetch(address, token="s3cret", tls=tls).text == "m 1\n"
        assert why_not(address, tls=Tls(authority.file)).startswith(f"{address}: ")


def test_a_redirect_from_tls_to_none_is_refused(page: str, authority: Authority) -> None:
    down = page.replace("/metrics", "/down")
    line = why_not(down, tls=Tls(ca=authority.file))
    assert line == f"{down}: redirects to another scheme, host or port, which is not followed"


def test_files_that_hold_no_certificate_are_named(page: str, client: Signed, authority: Authority) -> None:
    folder = authority.file.parent
    gone, text = folder / "gone.pem", folder / "text.pem"
    text.write_text("not a certificate\n")
    assert why_not(page, tls=Tls(ca=gone)) == f"{gone}: No such file or directory"
    assert why_not(page, tls=Tls(ca=text)) == f"{text}: holds no CA certificate"
    wanted = "holds no certificate with its key in plain PEM"
    assert why_not(page, tls=Tls(authority.file, text)) == f"{text}: {wanted}"
    assert why_not(page, tls=Tls(authority.file, client.certificate)) == f"{client.certificate}: {wanted}"
    other = authority.sign("other").key
    assert why_not(page, tls=Tls(authority.file, client.certificate, other)) == f"{client.certificate}: {wanted}"


def test_an_encrypted_key_asks_nobody_for_a_password(page: str, client: Signed, authority: Authority) -> None:
    key = serialization.load_pem_private_key(client.key.read_bytes(), None)
    locked = client.key.with_suffix(".locked")
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"word"),
        )
    )
    line = why_not(page, tls=Tls(authority.file, client.certificate, locked))
    assert line == f"{client.certificate}: holds no certificate with its key in plain PEM"


def test_certificates_without_tls_are_a_mistake(page: str, authority: Authority) -> None:
    plain = page.replace("https:", "http:")
    assert why_not(plain, tls=Tls(ca=authority.file)) == f"{plain}: certificates are for https addresses"


def test_a_server_that_says_nothing_is_given_up(authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"https://127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        line = why_not(address, tls=Tls(ca=authority.file), timeout_seconds=0.3)
        assert line == f"{address}: no answer within 0.3 seconds"
        assert time.monotonic() - begun < 2
