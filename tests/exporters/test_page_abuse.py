"""Nobody can take the page from the others: not by silence, by number, by slowness or by nonsense."""

from __future__ import annotations

import concurrent.futures
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.certificates import Authority
from tests.exporters.hub import until
from tests.exporters.site import PAGE, Site, ask, trusting

if TYPE_CHECKING:
    from pathlib import Path


def test_a_hundred_scrapes_at_once_are_all_answered_by_few_threads(site: Site) -> None:
    server = site.start(connection_limit=4)
    most = 0

    def watched() -> bytes:
        nonlocal most
        most = max(most, sum(thread.name.endswith("(_answer)") for thread in threading.enumerate()))
        return PAGE

    server.render = watched
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: ask(server).status, range(100)))
    assert answers == [200] * 100
    assert most <= 4


def test_connections_that_say_nothing_make_way(site: Site) -> None:
    """As many as there are threads: a scrape is answered after a second, long before they would time out."""
    server = site.start(connection_limit=4, request_seconds=60)
    silent = [site.stack.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(8)]
    for connection in silent:
        connection.sendall(b"GET /metrics HT")
    begun = time.monotonic()
    assert ask(server).status == 200
    assert time.monotonic() - begun < 15


def test_a_request_that_drips_is_cut_at_its_deadline(site: Site) -> None:
    server = site.start(request_seconds=1.0)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\n")
        begun = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT011 - broken pipe or reset, as the kernel likes
            until(lambda: connection.sendall(b"x"))  # one endless header, a byte at a time
        assert time.monotonic() - begun < 10


def test_whoever_does_not_read_is_cut_at_its_deadline(site: Site) -> None:
    site.page = b"x" * 50_000_000
    server = site.start(request_seconds=1.0, connection_limit=1)
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert ask(server, "/healthz").status == 200


def test_a_handshake_that_does_not_come_holds_nobody_up(site: Site, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    signed = authority.sign("page")
    server = site.start(tls_certificate=signed.certificate, tls_key=signed.key, connection_limit=2, request_seconds=60)
    for _ in range(4):
        site.stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
    assert ask(server, tls=trusting(authority)).status == 200


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"A" * 100_000, b"\r\n" * 100, b""]
)
def test_garbage_is_answered_or_closed_and_forgotten(site: Site, sent: bytes) -> None:
    server = site.start()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        try:
            while connection.recv(65536):
                pass
        except ConnectionResetError:
            pass
    assert ask(server).status == 200


def test_endless_headers_are_refused(site: Site) -> None:
    assert ask(site.start(), **{f"X{number}": "y" for number in range(150)}).status == 431


def test_threads_end_with_their_connections(site: Site) -> None:
    server = site.start()
    for _ in range(20):
        ask(server)
    until(lambda: not any("_answer" in thread.name for thread in threading.enumerate()))
