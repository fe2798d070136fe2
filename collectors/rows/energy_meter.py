"""The energy of one device: what its own meter added, and power x time where the meter says nothing or nonsense.

A meter that stands still under power either is served late (dcgm-exporter#164) or is frozen (amdsmi#38). Which one is
only known afterwards, so after a few readings energy is estimated from power, and what the meter adds when it moves
again is counted less the estimate: nothing is counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from collectors.rows.seconds import LONGEST_BRIDGE_SECONDS

if TYPE_CHECKING:
    from collectors.samples import Flag

FROZEN_READINGS: Final = 5
"""So many readings without news, with power drawn, are a meter that stands still."""
_MOST_WATTS: Final = 20_000
"""What no board draws, where none tells its limit."""
# The driver averages over its own second and the meter has its own tick, so a step may look a little too large.
_POWER_TOLERANCE: Final = 1.2


class Step(NamedTuple):
    """What a reading means: it lies between `since_second` (of the last reading) and `second`."""

    since_second: int
    second: int
    is_watched: bool
    longest_gap_seconds: int
    skipped: int
    """Readings left out since, because the clock had gone back."""
    ts_nanoseconds: int | None
    power_microjoules: int | None
    """Power x time of a watched step; None when power is unknown."""
    limit_watts: float | None


class Added(NamedTuple):
    """Energy that was added since a second; None is unknown."""

    millijoules: int | None
    since_second: int
    flags: tuple[Flag, ...] = ()
    is_reset: bool = False


@dataclass(slots=True)
class EnergyMeter:
    """The last reading of a device's meter, and what was estimated since."""

    total_millijoules: int | None = None
    changed_second: int = 0
    changed_nanoseconds: int | None = None
    silent_readings: int = 0
    pending_microjoules: int = 0
    """Drawn since the meter fell silent, and not yet counted: the meter may still bring it."""
    credited_millijoules: int = 0
    """Counted from power since the meter's last change."""
    before_rejected: int | None = None
    estimated_millijoules: int = 0
    """All that was ever counted from power."""

    def begin(self, total_millijoules: int | None, second: int, ts_nanoseconds: int | None) -> None:
        """Take a first reading: nothing was added yet."""
        self._change(total_millijoules, second, ts_nanoseconds)

    def advance(self, total: int | None, step: Step) -> Added:
        """Take the next reading."""
        before = self.total_millijoules
        if total is not None and before is None:
            # The first reading of a meter ends a time without one.
            added = self._estimate(step, ("estimated",))
            self._change(total, step.second, step.ts_nanoseconds)
            return added
        if total is None and before is None:
            return self._estimate(step, ("estimated",))
        if total is None or total == before:
            return self._silence(total, step)
        return self._news(total, before or 0, step)

    def _silence(self, total: int | None, step: Step) -> Added:
        if not step.is_watched:
            return Added(None, step.since_second)
        if not step.power_microjoules:
            if total is None:
                return Added(None, step.since_second)
            if not self.silent_readings:
                self.changed_second, self.changed_nanoseconds = step.second, step.ts_nanoseconds
            return Added(0, step.since_second)
        self.silent_readings += 1
        if self.silent_readings < FROZEN_READINGS:
            self.pending_microjoules += step.power_microjoules
            return Added(None if total is None else 0, step.since_second)
        added = self._estimate(step, ("estimated", "stale"))
        self.credited_millijoules += added.millijoules or 0
        return added

    def _news(self, total: int, before: int, step: Step) -> Added:
        since = self.changed_second
        if step.second - since <= step.longest_gap_seconds:
            since = step.since_second
        added: int | None = total - before
        is_reset = False
        flags: tuple[Flag, ...] = ()
        suspect = self.before_rejected
        if total < before:
            # A reading that was refused stood between: the meter is where it was, and has not begun again.
            is_recovery = suspect is not None and total >= suspect
            is_reset = not is_recovery
            in_sight = step.is_watched and step.second - self.changed_second <= step.longest_gap_seconds
            added = total if is_reset and in_sight else None
        elif step.second - since > LONGEST_BRIDGE_SECONDS:
            added, flags = None, ("partial",)
        self.before_rejected = None
        if added is not None and self._is_impossible(added, step):
            added, flags = None, ("rejected",)
            self.before_rejected = None if is_reset else before
        if added is None:
            result = self._estimate(step, flags)
        else:
            result = Added(max(added - self.credited_millijoules, 0), since, flags)
        self._change(total, step.second, step.ts_nanoseconds)
        return result._replace(is_reset=is_reset)

    def _estimate(self, step: Step, flags: tuple[Flag, ...]) -> Added:
        """Count what power says, the part of a millijoule being kept for the next time."""
        if step.power_microjoules is None:
            return Added(None, step.since_second, tuple(flag for flag in flags if flag != "estimated"))
        whole, self.pending_microjoules = divmod(self.pending_microjoules + step.power_microjoules, 1000)
        self.estimated_millijoules += whole
        return Added(whole, step.since_second, tuple({*flags, "estimated"}))

    def _is_impossible(self, millijoules: int, step: Step) -> bool:
        """Whether the board would have drawn more than it may, or than any board could."""
        seconds: float = step.second - self.changed_second
        if step.ts_nanoseconds is not None and self.changed_nanoseconds is not None:
            # A tick is a whole second, a reading is not taken exactly then.
            seconds = (step.ts_nanoseconds - self.changed_nanoseconds) / 1_000_000_000
        seconds = max(seconds, 1.0) + step.skipped * step.longest_gap_seconds
        return millijoules > seconds * (step.limit_watts or _MOST_WATTS) * 1000 * _POWER_TOLERANCE

    def _change(self, total: int | None, second: int, ts_nanoseconds: int | None) -> None:
        self.total_millijoules = total
        self.changed_second, self.changed_nanoseconds = second, ts_nanoseconds
        self.silent_readings = self.pending_microjoules = self.credited_millijoules = 0
