"""Which stream speaks for a node: two machines with the same name would mix up who held what.

Every hub knows its own streams only. Two machines with one name that reach two hubs are not seen here; their batches
are still stored apart, as each machine's spool has its own id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

SILENCE_SECONDS: Final = 180.0
"""A stream that pushed nothing for so long no longer speaks for its node: its machine may be gone."""
MAX_ORIGINS: Final = 256
"""Boots remembered of one node; more than any spool holds, and a bound on what a sender can make the hub keep."""
Origin: TypeAlias = tuple[str, str]
"""Boot id and spool id."""


@dataclass(slots=True)
class _Claim:
    stream: object
    pushed_at: float
    origins: set[Origin] = field(default_factory=set)


class NodeClaims:
    """The stream that speaks for each (cluster, node) now."""

    def __init__(self) -> None:
        """Nobody speaks for anybody."""
        self._claims: dict[tuple[str, str], _Claim] = {}

    def admit(self, stream: object, node: tuple[str, str], origin: Origin, now_seconds: float) -> bool:
        """Whether a batch of `origin` on this stream may be taken as the node's.

        A stream may bring batches of earlier boots. Another stream takes over when it brings what the first one
        brought (the same agent, connected again), or when the first has been silent for long.
        """
        claim = self._claims.get(node)
        if claim is None or (
            claim.stream is not stream and (origin in claim.origins or now_seconds - claim.pushed_at > SILENCE_SECONDS)
        ):
            claim = self._claims[node] = _Claim(stream, now_seconds)
        if claim.stream is not stream:
            return False
        claim.pushed_at = now_seconds
        if len(claim.origins) >= MAX_ORIGINS:
            claim.origins.clear()
        claim.origins.add(origin)
        return True

    def release(self, stream: object) -> None:
        """The stream ended: whoever comes next may speak for its nodes."""
        for node in [node for node, claim in self._claims.items() if claim.stream is stream]:
            del self._claims[node]
