"""One GET over HTTP: bounded in time and size, and never elsewhere than the host that was asked.

The time limit holds for the whole, however slowly each byte arrives. A body may be compressed by gzip (RFC 9110,
8.4.1.3); what it unpacks to is bounded while it is unpacked. Like Prometheus, no proxy of the environment is used: the
pages of a node are near.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urljoin, urlsplit

from collectors.exposition import PageError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CHUNK_BYTES: Final = 64 * 1024
_PORTS: Final = {"http": 80, "https": 443}
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM for https: who signs the server's certificate (None: the system's), and this side's own."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    """None where the certificate's file holds it."""


@dataclass(frozen=True, slots=True)
class Ask:
    """How a page is asked for. `token` is sent as `Authorization: Bearer`."""

    timeout_seconds: float
    byte_limit: int
    token: str | None = field(default=None, repr=False)
    tls: Tls | None = None
    accept: str = "text/plain;version=0.0.4, */*;q=0.1"


def get(address: str, ask: Ask, deadline: float | None = None) -> bytes:
    """Return what is at an http(s) address. PageError with one line when that is not possible.

    One redirect is followed, on the same scheme, host and port only: another one would get the token. A `deadline` of
    the monotonic clock is for several questions that share one time limit. A body that is larger than the limit is
    cut off at a byte more, for the caller to tell.
    """
    deadline = time.monotonic() + ask.timeout_seconds if deadline is None else deadline
    name = address_name(address)
    try:
        found = _visit(address, name, ask, deadline)
        if isinstance(found, str):
            address = _next(address, name, found)
            found = _visit(address, name, ask, deadline)
        if isinstance(found, str):
            raise PageError(f"{name}: redirects more than once")
    except (OSError, http.client.HTTPException, ValueError, zlib.error) as error:
        raise PageError(f"{name}: {_why(error, ask.timeout_seconds)}") from None
    return found


def address_name(address: str) -> str:
    """Return an address as messages may show it: without its query, which may hold a secret. PageError if none."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise PageError("the address of a page cannot be understood") from None
    if parts.scheme not in _PORTS:
        raise PageError(f"{shown(parts.scheme)}://...: a page is a file or an http(s) address")
    if parts.username is not None or parts.password is not None:
        raise PageError("an address holds a user or password; put a token into a file instead (--token-file)")
    if not host or any(not 32 < ord(letter) < 127 for letter in address):
        raise PageError("the address of a page cannot be understood")
    place = f"[{host}]" if ":" in host else host
    return shown(f"{parts.scheme}://{place}{'' if port is None else f':{port}'}{parts.path}")


def _next(address: str, name: str, location: str) -> str:
    """Where a redirect leads, if that is the same scheme, host and port."""
    try:
        following = urljoin(address, location)
        is_same = _origin(following) == _origin(address)
    except ValueError:
        is_same = False
    if not is_same:
        raise PageError(f"{name}: redirects to another scheme, host or port, which is not followed")
    address_name(following)
    return following


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _visit(address: str, name: str, ask: Ask, deadline: float) -> bytes | str:
    """Return the body, or where a redirect leads to."""
    parts = urlsplit(address)
    connection = _connection(address, name, ask, deadline)
    headers = {"Accept": ask.accept, "Accept-Encoding": "gzip", "Connection": "close"}
    if ask.token:
        headers["Authorization"] = f"Bearer {ask.token}"
    try:
        connection.request("GET", f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}", headers=headers)
        with http.client.HTTPResponse(cast("socket.socket", _Timely(connection.sock, deadline))) as response:
            response.begin()
            location = response.getheader("Location")
            if response.status in _MOVED and location:
                return location
            if not 200 <= response.status < 300:
                raise PageError(f"{name}: HTTP {response.status} {shown(response.reason)}".rstrip())
            body = _body(response, name, ask.byte_limit)
            if (missing := response.length) and len(body) <= ask.byte_limit:
                raise PageError(f"{name}: was cut off, {missing} bytes are missing")
            return body
    finally:
        connection.close()


def _connection(address: str, name: str, ask: Ask, deadline: float) -> http.client.HTTPConnection:
    """A connection that is made: `http.client` would grant the handshake a time limit of its own."""
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    if parts.scheme == "https":
        context = _context(ask.tls or Tls())
        secured = http.client.HTTPSConnection(host, port, context=context)
        plain = socket.create_connection((host, port), timeout=_left(deadline))
        try:
            plain.settimeout(_left(deadline))
            secured.sock = context.wrap_socket(plain, server_hostname=host)
        finally:
            if secured.sock is None:
                plain.close()
        return secured
    if ask.tls is not None:
        raise PageError(f"{name}: certificates are for https addresses")
    connection = http.client.HTTPConnection(host, port)
    connection.sock = socket.create_connection((host, port), timeout=_left(deadline))
    return connection


def _context(tls: Tls) -> ssl.SSLContext:
    """Made anew for each visit: certificates are replaced while an agent runs."""
    try:
        context = ssl.create_default_context(cafile=tls.ca)
    except OSError as error:
        raise PageError(_unusable(tls.ca, "CA certificate", error)) from None
    if tls.certificate is not None:
        try:
            # Without this, OpenSSL would ask for the password of an encrypted key at the terminal.
            context.load_cert_chain(tls.certificate, tls.key, password=lambda: "")
        except (OSError, ValueError) as error:
            raise PageError(_unusable(tls.certificate, "certificate with its key in plain PEM", error)) from None
    return context


def _unusable(path: Path | None, what: str, error: Exception) -> str:
    # An SSLError is an OSError, too, but its text is OpenSSL's.
    why = None if isinstance(error, ssl.SSLError) or not isinstance(error, OSError) else error.strerror
    return f"{shown(str(path))}: {why or f'holds no {what}'}"


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Timely(io.RawIOBase):
    """What a socket says until a deadline: its own timeout would begin anew with every byte."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._socket = sock
        self._deadline = deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The answer to read, as `http.client` asks for it."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # a BufferedReader has no other
        self._socket.settimeout(_left(self._deadline))
        return self._socket.recv_into(buffer)


def _body(response: http.client.HTTPResponse, name: str, byte_limit: int) -> bytes:
    """The body as it was before it was compressed; one byte beyond the limit tells that it is too large."""
    encoding = (response.getheader("Content-Encoding") or "identity").strip().lower()
    if encoding not in {"identity", "gzip", "x-gzip"}:
        raise PageError(f"{name}: is compressed as {shown(encoding)!r}, which was not asked for")
    unpack = None if encoding == "identity" else _Gzip()
    body = bytearray()
    arrived = 0
    while len(body) <= byte_limit and (chunk := response.read1(_CHUNK_BYTES)):
        arrived += len(chunk)
        if arrived > byte_limit:
            # Compressed bytes that unpack to nothing are no reason to read on.
            return bytes(byte_limit + 1)
        if unpack is None:
            body += chunk
            continue
        for part in unpack.parts(chunk):
            body += part
            if len(body) > byte_limit:
                break
    if unpack and arrived and not unpack.is_complete and len(body) <= byte_limit and not response.length:
        raise PageError(f"{name}: was cut off, its gzip stream has no end")
    return bytes(body)


class _Gzip:
    """Unpacks a stream of gzip members (RFC 1952, 2.2) a bounded part at a time."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WINDOW)

    @property
    def is_complete(self) -> bool:
        """Whether the last member has ended."""
        return self._member.eof

    def parts(self, packed: bytes) -> Iterator[bytes]:
        """Yield what bytes unpack to; whoever has enough stops asking."""
        while packed:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            yield self._member.decompress(packed, _CHUNK_BYTES)
            # What is unpacked and not yet given comes with the next bytes: a member ends with its checksum.
            packed = self._member.unused_data if self._member.eof else self._member.unconsumed_tail


def _why(error: Exception, timeout_seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_seconds:g} seconds"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {shown(error.verify_message)}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({shown(error.reason or type(error).__name__)})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, zlib.error):
        return "the answer is called gzip and is none"
    return f"the answer is not HTTP ({type(error).__name__})"
