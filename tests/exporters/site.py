"""A page on a real socket, and how a scraper asks for it."""

from __future__ import annotations

import http.client
import ssl
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from exporters.page_server import PageServer, PageSettings

if TYPE_CHECKING:
    from tests.certificates import Authority

PAGE = b"# HELP up Text.\n" + b"x 1\n" * 1_000


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Site:
    """A server with what it is told to say."""

    page: bytes | Exception = PAGE
    health: tuple[bool, str] = (True, "ok")
    ready: tuple[bool, str] = (True, "ok")
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self, listen: str = "127.0.0.1:0", **settings: Any) -> PageServer:
        limits = {name: settings.pop(name) for name in ("connection_limit", "request_seconds") if name in settings}
        made = PageSettings(listen, **{name: str(value) for name, value in settings.items()})
        server = PageServer(made, self.render, lambda: self.health, lambda: self.ready, **limits)
        server.start()
        self.stack.callback(server.stop)
        return server

    def render(self) -> bytes:
        if isinstance(self.page, Exception):
            raise self.page
        return self.page


def ask(
    server: PageServer,
    path: str = "/metrics",
    *,
    method: str = "GET",
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
    **headers: str,
) -> Answer:
    connection = (
        http.client.HTTPSConnection("localhost", server.port, timeout=20, context=tls)
        if tls
        else http.client.HTTPConnection(host, server.port, timeout=20)
    )
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.headers), answer.read())
    finally:
        connection.close()


def trusting(authority: Authority, *, own: Any = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.file)
    if own:
        context.load_cert_chain(own.certificate, own.key)
    return context
