"""Fetching pages: files and a real HTTP server that answers well, late, too much, elsewhere or not at all."""

from __future__ import annotations

import gzip
import os
import socket
import threading
import time
import tracemalloc
import zlib
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collectors.exposition import PageError
from collectors.http_get import _Gzip
from collectors.pages import fetch, read_token
from tests.collectors.secured import Quiet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = b'm{a="b"} 1\n'
BOMB_BYTES = 512 * 1024 * 1024


def bomb() -> bytes:
    """Half a gigabyte of nothing, packed a part at a time."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(2**20)) for _ in range(BOMB_BYTES // 2**20)) + packer.flush()


PACKED = {
    "/packed": ("gzip", gzip.compress(PAGE * 20_000)),
    "/packed-twice": ("x-gzip", gzip.compress(PAGE) + gzip.compress(PAGE)),
    "/packed-short": ("gzip", gzip.compress(PAGE)[:-6]),
    "/packed-not": ("gzip", PAGE),
    "/packed-else": ("br", PAGE),
    "/packed-empty": ("gzip", gzip.compress(b"") * 1000),
}


ANSWERS = {
    "/metrics": (200, PAGE, {}),
    "/large": (200, PAGE * 1000, {}),
    "/moved": (307, b"", {"Location": "/metrics"}),
    "/moved-with-token": (308, b"", {"Location": "/token"}),
    "/twice": (307, b"", {"Location": "/moved"}),
    "/loop": (302, b"", {"Location": "/loop"}),
    "/nowhere": (307, b"", {}),
    "/elsewhere": (302, b"", {"Location": "http://127.0.0.2:9/metrics"}),
    "/file": (302, b"", {"Location": "file:///etc/hostname"}),
}


class Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in ANSWERS:
            code, body, headers = ANSWERS[path]
            self.answer(code, body, **headers)
        elif path in PACKED:
            encoding, body = PACKED[path]
            self.answer(200, body, **{"Content-Encoding": encoding})
        elif path == "/token":
            is_known = self.headers.get("Authorization") == "Bearer s3cret"
            self.answer(200 if is_known else 401, PAGE if is_known else b"")
        elif path == "/asked":
            self.answer(200, f"asks_for_gzip {int(self.headers.get('Accept-Encoding') == 'gzip')}\n".encode())
        elif path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", str(len(PAGE) + 5))
            self.end_headers()
            self.wfile.write(PAGE)
        elif path == "/drip":
            self.drip(b"HTTP/1.1 200 OK\r\n\r\n", b"# slow\n")
        elif path == "/slow-head":
            self.drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n")
        elif path == "/hang":
            time.sleep(1)
        else:
            self.answer(404, b"")

    def drip(self, begin: bytes, part: bytes) -> None:
        for sent in (begin, *[part] * 100):
            self.wfile.write(sent)
            self.wfile.flush()
            time.sleep(0.05)

    def answer(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def exporter() -> Iterator[str]:
    with Quiet(("127.0.0.1", 0), Exporter) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def why_not(source: str | Path, **options: Any) -> str:
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


def test_one_redirect_is_followed_and_keeps_the_token(exporter: str) -> None:
    assert fetch(f"{exporter}/moved-with-token", token="s3cret").text == PAGE.decode()
    assert why_not(f"{exporter}/twice") == f"{exporter}/twice: redirects more than once"


def test_a_redirect_to_another_host_is_refused(exporter: str) -> None:
    line = why_not(f"{exporter}/elsewhere", token="s3cret")
    assert line == f"{exporter}/elsewhere: redirects to another scheme, host or port, which is not followed"


def test_a_redirect_to_a_file_is_refused(exporter: str) -> None:
    line = why_not(f"{exporter}/file")
    assert line == f"{exporter}/file: redirects to another scheme, host or port, which is not followed"


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
    assert why_not(f"{exporter}/loop") == f"{exporter}/loop: redirects more than once"
    assert why_not(f"{exporter}/nowhere") == f"{exporter}/nowhere: HTTP 307 Temporary Redirect"


@pytest.mark.parametrize("path", ["/drip", "/slow-head"])
def test_a_server_that_drips_is_given_up(exporter: str, path: str) -> None:
    begun = time.monotonic()
    assert why_not(f"{exporter}{path}", timeout_seconds=0.3) == f"{exporter}{path}: no answer within 0.3 seconds"
    assert time.monotonic() - begun < 2


def test_a_packed_page_is_unpacked(exporter: str) -> None:
    assert fetch(f"{exporter}/asked").text == "asks_for_gzip 1\n"
    assert fetch(f"{exporter}/packed").text == PAGE.decode() * 20_000
    assert fetch(f"{exporter}/packed-twice").text == PAGE.decode() * 2
    assert fetch(f"{exporter}/packed-empty").text == ""


def test_a_page_packed_wrongly_is_one_line(exporter: str) -> None:
    assert why_not(f"{exporter}/packed-short") == f"{exporter}/packed-short: was cut off, its gzip stream has no end"
    assert why_not(f"{exporter}/packed-not") == f"{exporter}/packed-not: the answer is called gzip and is none"
    line = f"{exporter}/packed-else: is compressed as 'br', which was not asked for"
    assert why_not(f"{exporter}/packed-else") == line
    # 20 bytes that unpack to nothing, a thousand times.
    assert why_not(f"{exporter}/packed-empty", byte_limit=999) == f"{exporter}/packed-empty: is larger than 999 bytes"


def test_the_limit_is_for_what_a_page_unpacks_to(exporter: str) -> None:
    size = len(PAGE) * 20_000
    assert len(fetch(f"{exporter}/packed", byte_limit=size).text) == size
    assert why_not(f"{exporter}/packed", byte_limit=size - 1).endswith(f"is larger than {size - 1} bytes")


def test_a_bomb_costs_its_limit_and_no_more(exporter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKED, "/bomb", ("gzip", bomb()))
    tracemalloc.start()
    try:
        assert why_not(f"{exporter}/bomb", byte_limit=2**20) == f"{exporter}/bomb: is larger than {2**20} bytes"
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


@settings(max_examples=200, deadline=None)
@given(
    contents=st.lists(st.tuples(st.binary(min_size=1, max_size=3), st.integers(0, 3 * 65_536)), max_size=4),
    cut=st.integers(1, 5_000),
)
@example(contents=[(b"\0", 65_536)], cut=5_000)
def test_whatever_was_packed_is_unpacked_however_it_arrives(contents: list[tuple[bytes, int]], cut: int) -> None:
    bodies = [seed * (size // len(seed)) for seed, size in contents]
    packed = b"".join(gzip.compress(body) for body in bodies)
    unpack = _Gzip()
    parts = [part for at in range(0, len(packed), cut) for part in unpack.parts(packed[at : at + cut])]
    assert b"".join(parts) == b"".join(bodies)
    assert unpack.is_complete or not packed
    assert all(len(part) <= 65_536 for part in parts)


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
