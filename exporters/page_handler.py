"""Answers one request for a page: who may see what, and in which form."""

from __future__ import annotations

import gzip
import logging
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Protocol

from exporters.node import CONTENT_TYPE
from exporters.page_secrets import is_token
from fleet.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from exporters.page_secrets import Renewed

LOG = logging.getLogger("gputally.page")
_TEXT = "text/plain; charset=utf-8"
_WORDS_LIMIT = 200
_GZIP_LEVEL = 1
"""A page is repetitive: the lowest level makes it 15 times smaller, the highest, seven times slower, 22 times."""


class Page(Protocol):
    """What the handler asks of its server."""

    render: Callable[[], bytes]
    health: Callable[[], tuple[bool, str]]
    ready: Callable[[], tuple[bool, str]]
    needs_certificate: bool
    tokens: Renewed[tuple[bytes, ...]] | None


class PageHandler(BaseHTTPRequestHandler):
    """One GET or HEAD on one connection, in HTTP/1.0: it ends with the answer."""

    error_message_format = "%(code)d %(message)s\n"
    error_content_type = _TEXT

    def __init__(self, connection: Any, client_address: Any, page: Page, heard: Callable[[Any], None]) -> None:
        self._page = page
        self._heard = heard
        super().__init__(connection, client_address, None)  # type: ignore[arg-type]  # the base only keeps its server

    def do_GET(self) -> None:
        """Answer by path; the query is ignored."""
        self._heard(self.connection)
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._metrics()
        elif path == "/healthz":
            self._state(self._page.health)
        elif path == "/readyz":
            self._state(self._page.ready)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_HEAD(self) -> None:
        """As GET, without the body."""
        self.do_GET()

    def _metrics(self) -> None:
        if self._page.needs_certificate and not self.connection.getpeercert():
            self.send_error(HTTPStatus.FORBIDDEN, "a client certificate is needed")
        elif self._page.tokens and not is_token(self.headers.get("Authorization", ""), self._page.tokens.get()):
            self._answer(HTTPStatus.UNAUTHORIZED, b"401 a token is needed\n", {"WWW-Authenticate": "Bearer"})
        else:
            try:
                page = self._page.render()
            except Exception:  # whatever a measurement does, the server answers
                LOG.exception("the page could not be rendered")
                self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
                return
            headers = {"Content-Type": CONTENT_TYPE, "Vary": "Accept-Encoding"}
            if _takes_gzip(self.headers.get("Accept-Encoding", "")):
                page = gzip.compress(page, _GZIP_LEVEL)
                headers["Content-Encoding"] = "gzip"
            self._answer(HTTPStatus.OK, page, headers)

    def _state(self, ask: Callable[[], tuple[bool, str]]) -> None:
        is_well, words = ask()
        status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
        body = one_line(words[:_WORDS_LIMIT]).encode("utf-8", errors="replace")
        self._answer(status, body + b"\n", {})

    def _answer(self, status: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": _TEXT} | headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        """Nothing about versions for strangers."""
        return "gputally"

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are no news."""


def _takes_gzip(accepted: str) -> bool:
    for offer in accepted.split(","):
        name, _, quality = offer.partition(";")
        if name.strip().lower() == "gzip":
            return quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False
