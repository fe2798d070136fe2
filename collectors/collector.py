"""What a collector is: something that reads one source and returns what it says.

A collector keeps what it must know between visits (open handles, counters' last values) in itself, and does nothing
but read. It need not watch the time: `collectors.guard` gives each visit a deadline, an outcome and a duration, and
replaces the process of one that hangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.errors import GputallyError

if TYPE_CHECKING:
    from collectors.samples import Reading


class SourceAbsentError(GputallyError):
    """The source is not on this node (no driver, no kubelet): nothing is wrong, and it may come."""


class RestartNeededError(GputallyError):
    """This process can never read the source again, only a new one can (the driver was replaced)."""


class Collector(Protocol):
    """One source of one kind."""

    def collect(self) -> Reading:
        """Visit the source. Raises a GputallyError with one line when it has nothing to say."""
        ...

    def close(self) -> None:
        """Give back what the collector holds; may be called twice."""
        ...
