"""HTTPS servers for tests, with certificates of a small authority."""

from __future__ import annotations

import ssl
import threading
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

    from tests.certificates import Signed


class Quiet(ThreadingHTTPServer):
    """A client that leaves early is what some tests are about."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


@contextmanager
def secured(
    handler: type[BaseHTTPRequestHandler], own: Signed, client_ca: Path | None = None, host: str = "127.0.0.1"
) -> Iterator[str]:
    """The https address of a server, which asks for a client's certificate where it knows who signs those."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    with Quiet((host, 0), handler) as server:
        # The handshake is for the thread of the client, not for the one that accepts.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"https://{host}:{server.server_port}"
        server.shutdown()
