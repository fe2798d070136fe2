"""HTTP server of a metrics page: /metrics, and /healthz and /readyz for whoever supervises the process.

Built on the standard library: the server of `prometheus_client` serves nothing but metrics, shakes hands over TLS in
the thread that accepts, and starts a thread for whoever connects. Here a connection has one thread of a bounded
number, one request, and a deadline; where all threads are taken, the silent lose theirs first.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import socketserver
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from exporters.page_handler import PageHandler
from exporters.page_secrets import Renewed, read_tokens, server_context
from fleet.address import split_address
from fleet.errors import ConfigError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = logging.getLogger("gputally.page")
_LOOK_SECONDS: Final = 0.5
_SHORT_PATIENCE_SECONDS: Final = 1.0
"""How long a connection may take to say what it wants while others wait."""


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Where a page is served and to whom. ConfigError for a combination that means nothing.

    `listen` is host:port, [ipv6]:port, or :port for every address of the machine; port 0 takes a free one. The others
    name files, empty is none. With `client_ca` or `token_file`, /metrics needs a certificate signed by it or one of
    its tokens; given both, both.
    """

    listen: str
    tls_certificate: str = ""
    tls_key: str = ""
    client_ca: str = ""
    token_file: str = ""

    def __post_init__(self) -> None:
        """Refuse half of a pair and an address that is none."""
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ConfigError("a certificate and its key go together: give both or none")
        if self.client_ca and not self.tls_certificate:
            raise ConfigError("client certificates need TLS: give a certificate and a key")
        try:
            self.address()
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def address(self) -> tuple[str, int]:
        """Host (empty for all) and port."""
        if self.listen.startswith(":") and self.listen.count(":") == 1:
            return "", split_address(f"any{self.listen}")[1]
        return split_address(self.listen)


class PageServer:
    """The server in its thread. `render` makes the page; `health` and `ready` say whether all is well, in words.

    None of them may block for long or tell secrets: the last two answer anybody.
    """

    def __init__(
        self,
        settings: PageSettings,
        render: Callable[[], bytes],
        health: Callable[[], tuple[bool, str]],
        ready: Callable[[], tuple[bool, str]],
        *,
        connection_limit: int = 16,
        request_seconds: float = 10.0,
    ) -> None:
        """Takes the address: ConfigError when it cannot be had, or a file cannot be used."""
        self.render, self.health, self.ready = render, health, ready
        self.needs_certificate = bool(settings.client_ca)
        self.tokens = _tokens(settings)
        self._tls = _tls(settings)
        self._server = _Server(_listen(settings), self, connection_limit, request_seconds)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_LOOK_SECONDS,), daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.socket.getsockname()[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more, and give the address back."""
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def secured(self, connection: socket.socket) -> socket.socket:
        """The connection, under TLS where that is set; the handshake is still to come."""
        if self._tls is None:
            return connection
        return self._tls.get().wrap_socket(connection, server_side=True, do_handshake_on_connect=False)


class _Server(socketserver.TCPServer):
    """A thread for each connection, up to a number; more wait in the kernel's queue."""

    def __init__(self, listening: socket.socket, page: PageServer, limit: int, request_seconds: float) -> None:
        self.address_family = listening.family
        super().__init__(listening.getsockname()[:2], socketserver.BaseRequestHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self._page = page
        self._request_seconds = request_seconds
        self._slots = threading.BoundedSemaphore(limit)
        self._lock = threading.Lock()
        # Connections with the time they came, by id; and those whose request has been read.
        self._open: dict[int, tuple[socket.socket, float]] = {}
        self._heard: set[int] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a thread; wait for a free one, taking them from connections that say nothing."""
        while not self._slots.acquire(timeout=0.1):
            self._cut(patience_seconds=_SHORT_PATIENCE_SECONDS)
        try:
            threading.Thread(target=self._answer, args=(request, client_address), daemon=True).start()
        except RuntimeError:  # the machine has no thread left
            self._slots.release()
            self.shutdown_request(request)

    def service_actions(self) -> None:
        """Called twice a second: end what takes too long."""
        self._cut(patience_seconds=self._request_seconds)

    def heard(self, connection: socket.socket) -> None:
        """The request has arrived, so the connection is not one of the silent."""
        with self._lock:
            self._heard.add(id(connection))

    def _answer(self, connection: Any, client_address: Any) -> None:
        try:
            connection.settimeout(self._request_seconds)
            connection = self._page.secured(connection)
            with self._lock:
                self._open[id(connection)] = (connection, time.monotonic())
            if isinstance(connection, ssl.SSLSocket):
                connection.do_handshake()
            PageHandler(connection, client_address, self._page, self.heard)
        except OSError as error:  # includes errors of TLS: strangers cause them at will
            LOG.debug("a connection ended early", extra={"reason": error})
        except Exception:
            LOG.exception("a page could not be served")
        finally:
            with self._lock:
                self._open.pop(id(connection), None)
                self._heard.discard(id(connection))
            self.shutdown_request(connection)
            self._slots.release()

    def _cut(self, patience_seconds: float) -> None:
        """Shut what has been open for longer than a request may take, or is still silent after `patience_seconds`."""
        now = time.monotonic()
        with self._lock:
            for key, (connection, opened_at) in self._open.items():
                age = now - opened_at
                if age > self._request_seconds or (age > patience_seconds and key not in self._heard):
                    _shut(connection)


def _shut(connection: socket.socket) -> None:
    """Wake whoever reads or writes it. Below TLS, whose own shutdown must not come from another thread."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _tokens(settings: PageSettings) -> Renewed[tuple[bytes, ...]] | None:
    if not settings.token_file:
        return None
    path = Path(settings.token_file)
    return Renewed(lambda: read_tokens(path), path)


def _tls(settings: PageSettings) -> Renewed[ssl.SSLContext] | None:
    if not settings.tls_certificate:
        return None
    certificate, key = Path(settings.tls_certificate), Path(settings.tls_key)
    client_ca = Path(settings.client_ca) if settings.client_ca else None
    files = [certificate, key] + ([client_ca] if client_ca else [])
    return Renewed(lambda: server_context(certificate, key, client_ca), *files)


def _listen(settings: PageSettings) -> socket.socket:
    host, port = settings.address()
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
        family, *_, address = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]  # noqa: S104 - asked for
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        raise ConfigError(f"cannot listen on {quoted(settings.listen)}: {error.strerror or error}") from None
