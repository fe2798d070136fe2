"""The collectors by name: what `gputally read KIND` and the agent can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from collectors.dcgm import Dcgm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.samples import Reading


class PageCollector(Protocol):
    """Reads one page, at a path or an http(s) address."""

    def __init__(self, source: str, *, token: str | None = None) -> None: ...

    def collect(self) -> Reading:
        """Fetch the page and return what it says; PageError when it cannot be had or is of another kind."""
        ...


PAGE_COLLECTORS: Mapping[str, type[PageCollector]] = {
    "dcgm": Dcgm,
}
"""Collectors of pages; a name is that of the collector's file."""
