"""What guards a page: certificates and tokens, read again when their files change, so that they may be renewed."""

from __future__ import annotations

import hmac
import logging
import ssl
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from fleet.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOG = logging.getLogger("gputally.page")
_Made = TypeVar("_Made")
_Signature = tuple[tuple[int, int, int], ...]


class Renewed(Generic[_Made]):
    """What is made from files, made anew when one of them changes. ConfigError if that fails the first time.

    Later the old one stays in use and the failure is logged once: files may be half-written at that moment.
    """

    def __init__(self, make: Callable[[], _Made], *paths: Path) -> None:
        self._make = make
        self._paths = paths
        self._lock = threading.Lock()
        self._signature = _signature(paths)
        try:
            self._made = make()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{paths[0]} cannot be used: {error}") from None

    def get(self) -> _Made:
        """The newest that could be made."""
        with self._lock:
            signature = _signature(self._paths)
            if signature != self._signature:
                self._signature = signature
                try:
                    self._made = self._make()
                except (OSError, ValueError) as error:
                    LOG.error("kept the old one", extra={"file": self._paths[0], "reason": error})  # noqa: TRY400 - no bug
            return self._made


def read_tokens(path: Path) -> tuple[bytes, ...]:
    """The tokens of a file, one a line, so that an old and a new one can overlap. ValueError when there is none."""
    tokens = tuple(line.strip() for line in path.read_bytes().splitlines() if line.strip())
    if not tokens:
        raise ValueError("it holds no token")
    return tokens


def is_token(header: str, tokens: tuple[bytes, ...]) -> bool:
    """Whether an Authorization header bears one of the tokens; takes the same time however much of one is right."""
    scheme, _, given = header.partition(" ")
    offered = given.strip().encode("utf-8", errors="replace")
    matches = [hmac.compare_digest(offered, token) for token in tokens]
    return scheme.lower() == "bearer" and any(matches)


def server_context(certificate: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    """TLS of a server. A client's certificate is checked if it shows one; whether it must is for each path to say."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    if client_ca is not None:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _signature(paths: tuple[Path, ...]) -> _Signature:
    """What changes with a file. Zeros for one that is not there."""
    found = []
    for path in paths:
        try:
            stat = path.stat()
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            found.append((0, 0, 0))
    return tuple(found)
