"""Whole seconds of a clock that may jump, and intervals of them cut where windows meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_BRIDGE_SECONDS: Final = 86_400
"""A longer hole is not bridged: the machine slept for a day, or more often, its clock was set."""


@dataclass(slots=True)
class Clock:
    """The newest second that was covered. What was covered once is not covered again when the clock goes back."""

    newest: int | None = None
    before_jump: int | None = None

    def has_returned(self, second: int) -> bool:
        """Advance to a second; whether the clock is back from a jump of more than a day.

        Seconds between the jump and its end were never covered, so covering may begin anew there. A step back
        otherwise only waits until time has caught up.
        """
        newest = self.newest
        if newest is None or second > newest:
            if newest is not None and second - newest > LONGEST_BRIDGE_SECONDS:
                self.before_jump = newest
            self.newest = second
            return False
        if self.before_jump is None or not self.before_jump <= second < newest - LONGEST_BRIDGE_SECONDS:
            return False
        self.newest, self.before_jump = second, None
        return True


def pieces(since: int, until: int, window_seconds: int) -> Iterator[tuple[int, int, int]]:
    """Cut [since, until) at the edges of windows: the window's start, and from and to within it."""
    while since < until:
        start = since - since % window_seconds
        end = min(until, start + window_seconds)
        yield start, since, end
        since = end


def parts(amount: int, since: int, until: int, window_seconds: int) -> Iterator[tuple[int, int]]:
    """Split an amount that was added during [since, until) by time: window starts and parts that add up exactly.

    The part up to a second is the amount's share of the time so far, rounded down; so parts are differences.
    """
    seconds = until - since
    for start, begin, end in pieces(since, until, window_seconds):
        yield start, amount * (end - since) // seconds - amount * (begin - since) // seconds
