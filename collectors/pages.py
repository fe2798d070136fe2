"""Fetch a page from a file or over HTTP: bounded in time and size, and only from the host that was asked for."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from collectors.exposition import PageError, shown

if TYPE_CHECKING:
    from http.client import HTTPMessage

BYTE_LIMIT = 32 * 1024 * 1024
TIMEOUT_SECONDS = 10.0
_CHUNK_BYTES = 64 * 1024
_TOKEN_LIMIT = 16_384


class Fetched(NamedTuple):
    """A page as text, the name it has in messages, and when it was read (None for a file, which may be old)."""

    source: str
    text: str
    read_at_ns: int | None


def fetch(
    source: str,
    *,
    token: str | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
    byte_limit: int = BYTE_LIMIT,
) -> Fetched:
    """Return the page at a path or an http(s) address. PageError with one line when that is not possible.

    The whole must arrive within the timeout. A token is sent as `Authorization: Bearer`. Bytes that are not UTF-8
    become replacement characters: they spoil a label, not a page.
    """
    if "://" not in source:
        return Fetched(shown(source), _read_file(source, byte_limit), None)
    name = _address_name(source)
    body = _read_address(source, name, token, timeout_seconds, byte_limit)
    return Fetched(name, body, time.time_ns())


def read_token(path: Path) -> str:
    """Return the bearer token that a file holds. Its content never shows in a message."""
    try:
        with path.open("rb") as file:
            token = file.read(_TOKEN_LIMIT + 1).strip().decode("ascii")
    except OSError as error:
        raise PageError(f"{shown(str(path))}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError:
        token = ""
    if not token or len(token) > _TOKEN_LIMIT or not token.isprintable() or " " in token:
        raise PageError(f"{shown(str(path))}: holds no bearer token (one line of visible ASCII)")
    return token


def _read_file(source: str, byte_limit: int) -> str:
    path = Path(source)
    try:
        if path.exists() and not path.is_file():
            raise PageError(f"{shown(source)}: is not a file")
        with path.open("rb") as file:
            body = file.read(byte_limit + 1)
    except OSError as error:
        raise PageError(f"{shown(source)}: {error.strerror or 'cannot be read'}") from None
    except ValueError:
        raise PageError(f"{shown(source)}: is no file name") from None
    return _decoded(body, shown(source), byte_limit)


def _address_name(source: str) -> str:
    """Return an address as messages may show it: without its query, which may hold a secret."""
    try:
        parts = urlsplit(source)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise PageError("the address of a page cannot be understood") from None
    if parts.scheme not in {"http", "https"}:
        raise PageError(f"{shown(parts.scheme)}://...: a page is a file or an http(s) address")
    if parts.username is not None or parts.password is not None:
        raise PageError("an address holds a user or password; put a token into a file instead (--token-file)")
    if not host or any(not 32 < ord(letter) < 127 for letter in source):
        raise PageError("the address of a page cannot be understood")
    place = f"[{host}]" if ":" in host else host
    return shown(f"{parts.scheme}://{place}{'' if port is None else f':{port}'}{parts.path}")


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows a redirect on the same scheme, host and port only: another one would get the token."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """Return the next request, or refuse."""
        if _origin(newurl) != _origin(req.full_url):
            raise PageError(
                f"{_address_name(req.full_url)}: redirects to another scheme, host or port, which is not followed"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _read_address(source: str, name: str, token: str | None, timeout_seconds: float, byte_limit: int) -> str:
    headers = {"Accept": "text/plain;version=0.0.4, */*;q=0.1", "Accept-Encoding": "identity"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    # A node's own pages are near: like Prometheus, no proxy of the environment is used.
    opener = urllib.request.build_opener(_SameHost, urllib.request.ProxyHandler({}))
    request = urllib.request.Request(source, headers=headers)  # noqa: S310 - the scheme was checked
    deadline = time.monotonic() + timeout_seconds
    try:
        with opener.open(request, timeout=timeout_seconds) as response:
            body = bytearray()
            while chunk := response.read1(_CHUNK_BYTES):
                body += chunk
                if len(body) > byte_limit:
                    break
                if time.monotonic() > deadline:
                    raise TimeoutError
            if (missing := response.length) and len(body) <= byte_limit:
                raise PageError(f"{name}: was cut off, {missing} bytes are missing")
    except urllib.error.HTTPError as error:
        error.close()
        raise PageError(f"{name}: HTTP {error.code} {shown(str(error.reason))}".rstrip()) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise PageError(f"{name}: {_why(error, timeout_seconds)}") from None
    return _decoded(bytes(body), name, byte_limit)


def _why(error: Exception, timeout_seconds: float) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout_seconds:g} seconds"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return f"the answer is not HTTP ({type(reason).__name__})"


def _decoded(body: bytes, name: str, byte_limit: int) -> str:
    if len(body) > byte_limit:
        raise PageError(f"{name}: is larger than {byte_limit} bytes")
    return body.decode("utf-8", errors="replace")
