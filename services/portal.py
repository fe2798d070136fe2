"""The portal's server: Streamlit's own ASGI application with a guard before it and one route of our own beside it.

The pages are `app/main.py`, found by path, for programs and pages are neighbours that do not import each other. Without
sign-in the portal serves this machine only: it refuses every address but loopback, and every request that was meant for
another name.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import hashlib
import logging
import re
import secrets
import socket
import threading
import time
import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import streamlit
import streamlit.config
import uvicorn
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from streamlit.starlette import App

from chargeback.finance_csv import csv_bytes
from chargeback.reports import run_report
from fleet.address import is_loopback
from fleet.errors import ConfigError, GputallyError
from fleet.period import month
from fleet.ticket import TicketError, redeem
from store.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fleet.config import Config

LOG = logging.getLogger("gputally.portal")
LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
HIDDEN: Final = ("/_stcore/metrics", "/_stcore/agent")
"""Streamlit's own pages that answer without any check."""
EXPORT_ROLES: Final = frozenset({"finance", "platform"})
INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)
NO_STORE: Final = {"Cache-Control": "no-store"}


def serve(workspace: Path, config: Config, *, host: str | None = None, port: int | None = None) -> None:
    """Serve a workspace's portal until interrupted. GputallyError when the address is refused or in use."""
    host = host or config.portal.host
    require_loopback(host)
    app = build_app(workspace, config, secrets.token_bytes(32))
    listening = listen(host, config.portal.port if port is None else port)
    address = listening.getsockname()
    # Streamlit collects garbage after every run; what the imports left behind need not be looked at each time.
    gc.collect()
    gc.freeze()
    # No proxy is trusted: behind loopback anybody could claim any address.
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            forwarded_allow_ips="",
            server_header=False,
            ws_max_size=1 << 20,
            timeout_graceful_shutdown=3,
        )
    )
    LOG.info("portal ready at http://%s:%d", f"[{address[0]}]" if ":" in address[0] else address[0], address[1])
    with listening, contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


def require_loopback(host: str) -> None:
    """Refuse to listen where others could reach a portal that has no sign-in yet."""
    if not is_loopback(host):
        raise ConfigError(
            f"portal.host {host!r} is not a loopback address: the portal has no sign-in yet and shows every "
            "team's money, so it listens on 127.0.0.1 only; reach it from elsewhere through an SSH tunnel"
        )


def listen(host: str, port: int) -> socket.socket:
    """Take the address, or say in one line why it cannot be had. Port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise GputallyError(
            f"the portal cannot listen on {host}:{port}: {error.strerror}; choose another with --port"
        ) from None


def build_app(workspace: Path, config: Config, key: bytes) -> App:
    """The whole ASGI application. `key` signs export tickets; it lives as long as the process."""
    package = resources.files("app")
    script = Path(str(package / "main.py"))
    force_settings((package / ".streamlit" / "config.toml").read_text("utf-8"))
    exporter = Exporter(workspace, config, key)
    return App(
        script,
        secrets={"portal": {"workspace": str(workspace.resolve()), "export_key": key.hex()}},
        routes=[Route("/export/{period}.csv", exporter.answer, methods=["GET"])],
        middleware=[Middleware(Guard, policy=content_policy())],
        on_script_error=_log_script_error,
    )


def force_settings(text: str) -> None:
    """Apply the portal's settings over whatever other Streamlit configuration this machine has."""
    flat = {f"{name}": value for name, value in _flattened(tomllib.loads(text))}
    streamlit.config.get_config_options(force_reparse=True, options_from_flags=flat)


def _flattened(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in table.items():
        if isinstance(value, dict):
            found += _flattened(value, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", value))
    return found


def _log_script_error(error: BaseException) -> None:
    LOG.error("a page failed", exc_info=error)


def content_policy() -> str:
    """The content security policy: only this server, and the one inline script of the installed Streamlit by its hash.

    Vega compiles its expressions, which needs `unsafe-eval`; Streamlit's styles are inline.
    """
    index = Path(streamlit.__file__).with_name("static") / "index.html"
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
        for script in INLINE_SCRIPT.findall(index.read_bytes())
    )
    return (
        f"default-src 'self'; script-src 'self' 'unsafe-eval' 'wasm-unsafe-eval' {hashes}; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
        "connect-src 'self' ws: wss:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; "
        "form-action 'self'; frame-ancestors 'none'"
    )


class Guard:
    """Judges every request, websockets included, before Streamlit sees it, and adds the security headers."""

    def __init__(self, app: ASGIApp, policy: str) -> None:
        """Wrap `app`."""
        self._app = app
        self._headers = [
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"same-origin"),
            (b"x-frame-options", b"DENY"),
            (b"cross-origin-opener-policy", b"same-origin"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = refused(scope)
        if refusal and scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return

        async def reply(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        await (refusal or self._app)(scope, receive, reply)


def refused(scope: Scope) -> Response | None:
    """The answer to a request that must not reach the pages; None for one that may.

    A page of another site can make a browser resolve its own name to loopback, so the name asked for counts, and a
    socket is only for pages of this very server.
    """
    headers = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1 or re.sub(r":\d+$", "", hosts[0]).lower() not in LOOPBACK_NAMES:
        return PlainTextResponse("this portal answers to the machine it runs on only\n", 421, NO_STORE)
    if scope["path"].startswith(HIDDEN):
        return PlainTextResponse("not found\n", 404, NO_STORE)
    if scope["type"] == "websocket":
        origins = [value for name, value in headers if name == b"origin"]
        if any(origin.partition("://")[2].lower() != hosts[0].lower() for origin in origins):
            return PlainTextResponse("not from another page\n", 403, NO_STORE)
    return None


class Exporter:
    """The one file that the portal hands out: the finance CSV, byte for byte as `gputally export` writes it."""

    def __init__(self, workspace: Path, config: Config, key: bytes) -> None:
        """Remember where to read; the lake is opened at the first request."""
        self._catalog = workspace / config.lake.catalog
        self._data = workspace / config.lake.data
        self._key = key
        self._lake: Lake | None = None
        self._opening = threading.Lock()

    def answer(self, request: Request) -> Response:
        """Judge the ticket anew at every request, then send the file."""
        period = request.path_params["period"]
        try:
            claims = redeem(self._key, request.query_params.get("ticket", ""), now_s=time.time())
        except TicketError as error:
            words = "this link has expired; reload the page" if error.expired else "not allowed"
            return PlainTextResponse(f"{words}\n", 403, NO_STORE)
        if claims.get("role") not in EXPORT_ROLES or claims.get("period") != period:
            return PlainTextResponse("not allowed\n", 403, NO_STORE)
        try:
            month(period)
            content = self._content(period, claims.get("build", ""))
        except (ValueError, GputallyError) as error:
            return PlainTextResponse(f"{error}\n", 404, NO_STORE)
        if content is None:
            return PlainTextResponse("a new build was published; reload the page\n", 409, NO_STORE)
        name = f'attachment; filename="chargeback-{period}.csv"'
        return Response(content, media_type="text/csv; charset=utf-8", headers=NO_STORE | {"Content-Disposition": name})

    def _content(self, period: str, build_id: str) -> bytes | None:
        """The file, read in one transaction with the build it belongs to; None if that is not the published one."""
        with self._opening:
            self._lake = self._lake or Lake.open(self._catalog, self._data, read_only=True)
        cursor = self._lake.cursor()
        try:
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            found = run_report(cursor, "published_build", {"period": period}).to_pylist()
            if not found or found[0]["build_id"] != build_id:
                return None
            return csv_bytes(cursor, period)
        finally:
            cursor.close()
