"""Short forms in which the mappings of engines are written."""

from __future__ import annotations

from collectors.serving.mapping import Signal, Source


def spelled(signal: str, *names: str, scale: float = 1, at_finish: bool = False, is_estimate: bool = False) -> Signal:
    """A signal under one name or several, of which the first on the page counts."""
    return Signal(
        signal,
        tuple(Source(name, scale=scale, at_finish=at_finish, is_estimate=is_estimate) for name in names),
    )
