"""Fetching pages: files and a real HTTP server that answers well, late, too much, elsewhere or not at all."""

from __future__ import annotations

import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from collectors.exposition import PageError
from collectors.pages import fetch, read_token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = b'm{a="b"} 1\n'


class Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self.answer(200, PAGE)
        elif path == "/token":
            is_known = self.headers.get("Authorization") == "Bearer s3cret"
            self.answer(200 if is_known else 401, PAGE if is_known else b"")
        elif path == "/moved":
            self.answer(307, b"", Location="/metrics")
        elif path == "/elsewhere":
            self.answer(302, b"", Location="http://127.0.0.2:9/metrics")
        elif path == "/file":
            self.answer(302, b"", Location="file:///etc/hostname")
        elif path == "/loop":
            self.answer(302, b"", Location="/loop")
        elif path == "/large":
            self.answer(200, PAGE * 1000)
        elif path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", str(len(PAGE) + 5))
            self.end_headers()
            self.wfile.write(PAGE)
        elif path == "/drip":
            self.send_response(200)
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b"# slow\n")
                self.wfile.flush()
                time.sleep(0.05)
        elif path == "/hang":
            time.sleep(1)
        else:
            self.answer(404, b"")

    def answer(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that leaves early is what some tests are about."""


@pytest.fixture(scope="module")
def exporter() -> Iterator[str]:
    with Quiet(("127.0.0.1", 0), Exporter) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def why_not(source: str | Path, **options: float | str) -> str:
    with pytest.raises(PageError) as error:
        fetch(str(source), **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "page.prom"
    path.write_bytes(PAGE + b"# \xff\n")
    fetched = fetch(str(path))
    assert (fetched.source, fetched.text, fetched.read_at_ns) == (str(path), PAGE.decode() + "# \ufffd\n", None)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert why_not(tmp_path / "gone.prom") == f"{tmp_path}/gone.prom: No such file or directory"
    assert why_not(tmp_path) == f"{tmp_path}: is not a file"
    os.mkfifo(tmp_path / "pipe")
    assert why_not(tmp_path / "pipe") == f"{tmp_path}/pipe: is not a file"
    assert why_not("a\0b") == "'a\\x00b': is no file name"
    (tmp_path / "large").write_bytes(PAGE * 10)
    assert why_not(tmp_path / "large", byte_limit=100) == f"{tmp_path}/large: is larger than 100 bytes"


def test_an_address_is_read(exporter: str) -> None:
    before = time.time_ns()
    fetched = fetch(f"{exporter}/metrics?x=1")
    assert (fetched.source, fetched.text) == (f"{exporter}/metrics", PAGE.decode())
    assert before <= (fetched.read_at_ns or 0) <= time.time_ns()


def test_a_redirect_on_the_same_host_is_followed(exporter: str) -> None:
    assert fetch(f"{exporter}/moved").text == PAGE.decode()


def test_a_redirect_to_another_host_is_refused(exporter: str) -> None:
    line = why_not(f"{exporter}/elsewhere", token="s3cret")
    assert line == f"{exporter}/elsewhere: redirects to another scheme, host or port, which is not followed"


def test_a_redirect_to_a_file_is_refused(exporter: str) -> None:
    assert why_not(f"{exporter}/file").startswith(f"{exporter}/file: HTTP 302 ")


def test_a_token_is_sent(exporter: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    assert fetch(f"{exporter}/token", token=read_token(tmp_path / "token")).text == PAGE.decode()
    assert why_not(f"{exporter}/token") == f"{exporter}/token: HTTP 401 Unauthorized"


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"a\nb", b"\xff", b"x" * 20_000])
def test_a_file_without_a_token_is_named_and_not_shown(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(PageError) as error:
        read_token(tmp_path / "token")
    assert str(error.value) == f"{tmp_path}/token: holds no bearer token (one line of visible ASCII)"


def test_a_missing_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="gone: No such file or directory"):
        read_token(tmp_path / "gone")


def test_what_a_server_does_wrong_is_one_line(exporter: str) -> None:
    assert why_not(f"{exporter}/none") == f"{exporter}/none: HTTP 404 Not Found"
    assert why_not(f"{exporter}/large", byte_limit=5000) == f"{exporter}/large: is larger than 5000 bytes"
    assert why_not(f"{exporter}/short") == f"{exporter}/short: was cut off, 5 bytes are missing"
    assert why_not(f"{exporter}/hang", timeout_seconds=0.2) == f"{exporter}/hang: no answer within 0.2 seconds"
    assert why_not(f"{exporter}/loop").startswith(f"{exporter}/loop: HTTP 302 ")


def test_a_server_that_drips_is_given_up(exporter: str) -> None:
    begun = time.monotonic()
    assert why_not(f"{exporter}/drip", timeout_seconds=0.3) == f"{exporter}/drip: no answer within 0.3 seconds"
    assert time.monotonic() - begun < 3


def test_nobody_at_the_address_is_one_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert why_not(f"http://127.0.0.1:{port}/metrics") == f"http://127.0.0.1:{port}/metrics: Connection refused"


ADDRESSES = [
    ("ftp://host/x", "ftp://...: a page is a file or an http(s) address"),
    ("file:///etc/passwd", "file://...: a page is a file or an http(s) address"),
    ("http://user:pass@host/", "an address holds a user or password; put a token into a file instead (--token-file)"),
    ("http://", "the address of a page cannot be understood"),
    ("http://host:port/", "the address of a page cannot be understood"),
    ("http://host/a b", "the address of a page cannot be understood"),
    ("http://host/\r\nX: y", "the address of a page cannot be understood"),
    ("http://[::1/", "the address of a page cannot be understood"),
]


@pytest.mark.parametrize(("address", "line"), ADDRESSES, ids=[repr(address) for address, _ in ADDRESSES])
def test_an_address_that_is_none_is_refused_without_its_secrets(address: str, line: str) -> None:
    assert why_not(address) == line


def test_a_proxy_of_the_environment_is_not_asked(exporter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert fetch(f"{exporter}/metrics").text == PAGE.decode()
