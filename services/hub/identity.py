"""Who may send in a node's name: a certificate that names the node, or a token that was given to it.

An agent that is not who it claims to be is answered "later", not refused: its data waits in its spool while someone
mends the certificate or the token file.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

LOG = logging.getLogger("gputally.hub")
ANY_NODE: Final = "*"
SHORTEST_TOKEN: Final = 16
LOOK_AGAIN_SECONDS: Final = 1.0
DNS_NAME: Final = "peer_dns"
COMMON_NAME: Final = "x509_common_name"


@dataclass(frozen=True, slots=True)
class Peer:
    """What one connection has shown: the names in its verified certificate, and its token."""

    names: frozenset[str] = frozenset()
    token: str = ""


def peer_of(auth_context: Mapping[str, Iterable[bytes]], metadata: Iterable[tuple[str, Any]]) -> Peer:
    """Read a peer from gRPC's authentication context and the call's metadata."""
    shown = [*auth_context.get(DNS_NAME, ()), *auth_context.get(COMMON_NAME, ())]
    names = frozenset(name.decode("utf-8", "replace") for name in shown)
    given = [value for key, value in metadata if key == "authorization"]
    scheme, _, token = given[0].partition(" ") if len(given) == 1 and isinstance(given[0], str) else ("", "", "")
    return Peer(names, token.strip() if scheme.lower() == "bearer" else "")


class TokenFile:
    """Tokens by node, read again when the file changes. Only hashes of them are kept."""

    def __init__(self, path: Path) -> None:
        """Read the file once; OSError when it cannot be read."""
        self._path = path
        self._tokens: dict[str, list[bytes]] = {}
        self._seen: tuple[int, int, int] | None = None
        self._looked_at = time.monotonic()
        self._read()

    def allows(self, node: str, token: str) -> bool:
        """Whether this token is the node's, or one for the whole fleet. Takes the same time for a near miss."""
        self._look()
        shown = _digest(token)
        known = self._tokens.get(node, []) + self._tokens.get(ANY_NODE, [])
        return sum(hmac.compare_digest(shown, one) for one in known) > 0

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked_at < LOOK_AGAIN_SECONDS:
            return
        self._looked_at = now
        try:
            self._read()
        except (OSError, UnicodeDecodeError) as error:
            # The file may be being replaced this moment: what it said holds until it can be read again.
            LOG.warning("the token file cannot be read", extra={"path": self._path, "error": type(error).__name__})

    def _read(self) -> None:
        state = self._path.stat()
        seen = (state.st_mtime_ns, state.st_size, state.st_ino)
        if seen == self._seen:
            return
        tokens: dict[str, list[bytes]] = {}
        for number, line in enumerate(self._path.read_text("utf-8").splitlines(), start=1):
            parts = line.split()
            if not parts or parts[0].startswith("#"):
                continue
            if len(parts) != 2 or len(parts[1]) < SHORTEST_TOKEN:
                # The line itself holds a secret, or most of one.
                LOG.warning(
                    "a line of the token file is not `NODE TOKEN` with a token of 16 characters or more",
                    extra={"path": self._path, "line": number},
                )
                continue
            tokens.setdefault(parts[0], []).append(_digest(parts[1]))
        self._tokens, self._seen = tokens, seen


class Identity:
    """Every check that the settings ask for must pass."""

    def __init__(self, *, by_certificate: bool, tokens: TokenFile | None) -> None:
        """With neither, everybody is believed: the settings allow that on loopback only."""
        self._by_certificate = by_certificate
        self._tokens = tokens

    def allows(self, peer: Peer, node: str) -> bool:
        """Whether this peer may send in the node's name."""
        if self._by_certificate and node not in peer.names:
            return False
        return self._tokens is None or self._tokens.allows(node, peer.token)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
