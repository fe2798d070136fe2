"""Compare readings of the same devices over time: what counters added, what went missing, what happened.

A step lies between two readings. A counter that fell began again: the step is marked, and what it shows by now was
added since, so nothing is ever negative. A device that is no longer named stays in the fleet as lost, with its
owner, until it is named again; then its counters bridge the gap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collectors.faults.page_xids import PageXids
from collectors.rows.roster import Roster
from collectors.samples import COUNTERS, DeviceSample, Flag, Reading, Rejected

if TYPE_CHECKING:
    from collections.abc import Iterable

_Key = tuple[str, str | None]
# The driver averages over its own second and the meter has its own tick, so a step may look a little too large.
_POWER_TOLERANCE = 1.2
_MOST_WATTS = 20_000
"""What no board draws, where none tells its limit."""


class Steps:
    """Remembers the devices of one source and turns its readings into steps."""

    def __init__(self) -> None:
        self._last: dict[_Key, DeviceSample] = {}
        self._epochs: dict[_Key, int] = {}
        self._roster = Roster()
        self._xids = PageXids()
        self._has_begun = False
        self._lists_holders_only = False

    def advance(self, reading: Reading) -> Reading | None:
        """Return the step from the reading before to this one; None for the first, which has nothing before it."""
        present = {sample.key: sample for sample in reading.samples}
        self._lists_holders_only = self._lists_holders_only or reading.lists_holders_only
        whole = self._roster.complete(reading.samples, lists_holders_only=self._lists_holders_only)
        events = self._xids.news(reading.samples)
        if not self._has_begun:
            self._has_begun = True
            self._last = present
            return None
        refused: list[str] = []
        samples = [self._step(sample, refused) for sample in reading.samples]
        samples += [self._absent(sample) for sample in whole[len(reading.samples) :]]
        # An instance that the board no longer has is forgotten with its counters.
        self._last = {sample.key: self._last[sample.key] for sample in whole if sample.key in self._last}
        for key, sample in present.items():
            self._last[key] = _with_memory(sample, self._last.get(key))
        counted = [*reading.rejected, *(Rejected(reason, refused.count(reason)) for reason in sorted(set(refused)))]
        return replace(reading, samples=tuple(samples), events=tuple(events), rejected=tuple(counted))

    def _step(self, now: DeviceSample, refused: list[str]) -> DeviceSample:
        before = self._last.get(now.key)
        flags: set[Flag] = set(now.quality)
        seconds = _seconds(before, now)
        deltas: dict[str, Any] = {}
        for name in COUNTERS:
            deltas[name] = _delta(getattr(before, name, None), getattr(now, name), flags)
        if "reset" in flags:
            self._epochs[now.key] = self._epochs.get(now.key, 0) + 1
        if deltas["energy_millijoules"] == 0 and (now.power_watts or 0) > 0:
            # Something draws power and its meter stands still: the source repeats what it said before.
            deltas["energy_millijoules"] = None
            flags.add("stale")
        if _is_impossible(deltas["energy_millijoules"], seconds, now.power_limit_watts):
            deltas["energy_millijoules"] = None
            flags.add("rejected")
            refused.append("implausible_energy")
        return replace(
            now,
            counters="delta",
            interval_seconds=seconds,
            driver_epoch=self._epochs.get(now.key, 0),
            quality=tuple(sorted(flags)),
            **deltas,
        )

    def _absent(self, sample: DeviceSample) -> DeviceSample:
        return replace(sample, counters="delta", driver_epoch=self._epochs.get(sample.key, 0))


def steps(readings: Iterable[Reading]) -> list[Reading]:
    """Return the steps between readings given in time order: one less than there are readings."""
    walk = Steps()
    return [step for reading in readings if (step := walk.advance(reading))]


def _delta(before: int | None, now: int | None, flags: set[Flag]) -> int | None:
    if before is None or now is None:
        return None
    if now < before:
        flags.add("reset")
        return now
    return now - before


def _seconds(before: DeviceSample | None, now: DeviceSample) -> float | None:
    if before is None or before.ts_nanoseconds is None or now.ts_nanoseconds is None:
        return None
    nanoseconds = now.ts_nanoseconds - before.ts_nanoseconds
    return nanoseconds / 1_000_000_000 if nanoseconds > 0 else None


def _is_impossible(millijoules: int | None, seconds: float | None, limit_watts: float | None) -> bool:
    """Whether a board would have drawn more than it may, or than any board could; unknown is not impossible."""
    if millijoules is None or seconds is None:
        return False
    return millijoules > seconds * (limit_watts or _MOST_WATTS) * 1000 * _POWER_TOLERANCE


def _with_memory(now: DeviceSample, before: DeviceSample | None) -> DeviceSample:
    """A reading with the last known counters where it has none."""
    if before is None:
        return now
    gaps = {name: getattr(before, name) for name in COUNTERS if getattr(now, name) is None}
    return replace(now, **gaps)
