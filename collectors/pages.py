"""Fetch a page from a file or over HTTP: bounded in time and size, and only from the host that was asked for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from collectors.exposition import PageError, shown
from collectors.http_get import Ask, Tls, address_name, get

BYTE_LIMIT = 32 * 1024 * 1024
TIMEOUT_SECONDS = 10.0
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
    tls: Tls | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
    byte_limit: int = BYTE_LIMIT,
) -> Fetched:
    """Return the page at a path or an http(s) address. PageError with one line when that is not possible.

    The whole must arrive within the timeout, and may be compressed on its way. A token is sent as `Authorization:
    Bearer`; `tls` is for https addresses. Bytes that are not UTF-8 become replacement characters: they spoil a label,
    not a page.
    """
    if "://" not in source:
        return Fetched(shown(source), _read_file(source, byte_limit), None)
    name = address_name(source)
    body = get(source, Ask(timeout_seconds=timeout_seconds, byte_limit=byte_limit, token=token, tls=tls))
    return Fetched(name, _decoded(body, name, byte_limit), time.time_ns())


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


def _decoded(body: bytes, name: str, byte_limit: int) -> str:
    if len(body) > byte_limit:
        raise PageError(f"{name}: is larger than {byte_limit} bytes")
    return body.decode("utf-8", errors="replace")
