"""One device over time: until when it is covered, what its counters showed last, and the windows that are open.

Counters are compared with their last known value, however long ago; what was added in between is split by time over the
windows. One that fell began again: what it shows by now was added since, if somebody looked all the while, and is
unknown otherwise. Nothing is ever negative.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from collectors.rows.energy_meter import EnergyMeter, Step
from collectors.rows.open_window import COUNTED, OpenWindow, counts_of, levels, split
from collectors.rows.seconds import LONGEST_BRIDGE_SECONDS, parts, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collectors.samples import DeviceSample
    from fleet.telemetry import DeviceWindowRow

_UNSEEN: Final = ("lost", "unobserved")
# A driver that is loaded anew sets all counters back, and those read seldom are seen to fall later.
_ONE_RESET_SECONDS: Final = 60


@dataclass(slots=True)
class Watch:
    """What the devices of one source share. A longer gap is time in which nobody looked."""

    window_seconds: int
    longest_gap_seconds: int
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class DeviceTrack:
    """The memory of one device. `visit` is its owner's mark of when the device was named last."""

    watch: Watch
    covered_second: int
    is_part: bool
    ts_nanoseconds: int | None = None
    totals: list[int | None] = field(default_factory=lambda: [None] * len(COUNTED))
    known_seconds: list[int] = field(default_factory=lambda: [0] * len(COUNTED))
    meter: EnergyMeter = field(default_factory=EnergyMeter)
    driver_epoch: int = 0
    reset_second: int | None = None
    skipped: int = 0
    visit: int = 0
    windows: dict[int, OpenWindow] = field(default_factory=dict)

    @classmethod
    def begin(cls, watch: Watch, sample: DeviceSample, second: int) -> DeviceTrack:
        """A device that is seen first: its counters are where they are, no time is covered."""
        track = cls(watch, second, sample.parent_uuid is not None)
        track.start(sample, second)
        return track

    def start(self, sample: DeviceSample, second: int) -> None:
        """Begin at a second: nothing before it is known."""
        self.covered_second, self.ts_nanoseconds, self.skipped = second, sample.ts_nanoseconds, 0
        self.totals, self.known_seconds = list(counts_of(sample)), [second] * len(COUNTED)
        self.meter.begin(sample.energy_millijoules, second, sample.ts_nanoseconds)

    def advance(self, sample: DeviceSample, second: int) -> None:
        """Cover the time up to a second with a sample. Time that is covered already stays as it is.

        A hole of more than a day is not bridged: covering begins anew behind it.
        """
        seconds = second - self.covered_second
        if seconds <= 0:
            self.skipped += 1
            return
        # The same reading once more says nothing new, in particular not that a meter stands still.
        is_repeat = sample.ts_nanoseconds is not None and sample.ts_nanoseconds == self.ts_nanoseconds
        is_gap = seconds > self.watch.longest_gap_seconds
        if is_repeat and not is_gap:
            return
        if seconds > LONGEST_BRIDGE_SECONDS:
            self.start(sample, second)
            return
        last = self._window(second - 1)
        if is_gap or sample.state in _UNSEEN:
            self._leave_blind(second)
            power, is_watched = None, False
        else:
            power, is_watched = self._watch(sample, second, last), True
        if is_repeat:
            last.see("unobserved", ("stale",))
        else:
            last.see(sample.state, sample.quality)
            self._meter(sample, second, last, power, is_watched=is_watched)
            self._count(sample, second, last, is_watched=is_watched)
            self.ts_nanoseconds = sample.ts_nanoseconds
        self.covered_second, self.skipped = second, 0

    def begin_anew(self, second: int) -> None:
        """Go on from a second that lies before what was covered last; what was added meanwhile is not known."""
        self.covered_second = self.meter.changed_second = second
        self.known_seconds = [second] * len(COUNTED)

    def taken(self, device: str, until_second: int) -> Iterator[DeviceWindowRow]:
        """Take out the windows that end by a second. Whole windows of which nothing is known make no row."""
        window_seconds = self.watch.window_seconds
        for start in [start for start in self.windows if start + window_seconds <= until_second]:
            window = self.windows.pop(start)
            if not window.says_nothing or 0 < window.window_ms < window_seconds * 1000:
                yield window.row(device, self.driver_epoch)

    def state(self) -> dict[str, Any]:
        """All of it as plain values for JSON."""
        names = ("covered_second", "is_part", "ts_nanoseconds", "totals", "known_seconds", "driver_epoch",
                 "reset_second", "skipped")  # fmt: skip
        windows = [asdict(window) for window in self.windows.values()]
        return {name: getattr(self, name) for name in names} | {"meter": asdict(self.meter), "windows": windows}

    @classmethod
    def resumed(cls, watch: Watch, state: Mapping[str, Any]) -> DeviceTrack:
        """The track of a state. TypeError or ValueError for anything that is none."""
        plain = dict(state)
        meter = EnergyMeter(**plain.pop("meter"))
        windows = {known["start_second"]: OpenWindow(**known) for known in plain.pop("windows")}
        track = cls(watch=watch, meter=meter, windows=windows, **plain)
        if not len(track.totals) == len(track.known_seconds) == len(COUNTED):
            raise ValueError("a state of other counters")
        return track

    def _window(self, second: int) -> OpenWindow:
        start = second - second % self.watch.window_seconds
        window = self.windows.get(start)
        if window is None:
            window = self.windows[start] = OpenWindow(start)
        return window

    def _leave_blind(self, second: int) -> None:
        for start, begin, end in pieces(self.covered_second, second, self.watch.window_seconds):
            self._window(start).window_ms += (end - begin) * 1000

    def _watch(self, sample: DeviceSample, second: int, last: OpenWindow) -> int | None:
        """Integrate over the time since the device was covered; return power x time of it."""
        since = self.covered_second
        interval_ms = (second - since) * 1000
        known = levels(sample, interval_ms)
        if known.refused:
            self.watch.rejected["range"] += known.refused
        if last.start_second <= since:
            last.window_ms += interval_ms
            last.observe(sample, known, interval_ms)
        else:
            for start, begin, end in pieces(since, second, self.watch.window_seconds):
                window = self._window(start)
                from_ms, to_ms = (begin - since) * 1000, (end - since) * 1000
                window.window_ms += to_ms - from_ms
                window.observe(sample, split(known, from_ms, to_ms, interval_ms), to_ms - from_ms)
                window.see(sample.state, ())
        return None if known.power_milliwatts is None else known.power_milliwatts * interval_ms

    def _meter(
        self, sample: DeviceSample, second: int, last: OpenWindow, power_microjoules: int | None, *, is_watched: bool
    ) -> None:
        total = sample.energy_millijoules
        if self.is_part or (total is None and power_microjoules is None):
            return
        step = Step(
            self.covered_second, second, is_watched, self.watch.longest_gap_seconds, self.skipped,
            sample.ts_nanoseconds, power_microjoules, sample.power_limit_watts,
        )  # fmt: skip
        added = self.meter.advance(total, step)
        if added.is_reset:
            self._reset(second, last)
        if added.flags:
            last.see(sample.state, added.flags)
            if "rejected" in added.flags:
                self.watch.rejected["implausible_energy"] += 1
        if added.millijoules is None:
            return
        if added.since_second >= last.start_second:
            last.meter(added.millijoules)
            return
        for start, part in parts(added.millijoules, added.since_second, second, self.watch.window_seconds):
            if part or start in self.windows:
                self._window(start).meter(part)

    def _count(self, sample: DeviceSample, second: int, last: OpenWindow, *, is_watched: bool) -> None:
        totals, known_seconds = self.totals, self.known_seconds
        for index, now in enumerate(counts_of(sample)):
            if now is None:
                continue
            before = totals[index]
            if now == before:
                last.count(index, 0)
            elif before is not None:
                self._add(index, before, now, second, last, is_watched=is_watched)
            totals[index] = now
            known_seconds[index] = second

    def _add(self, index: int, before: int, now: int, second: int, last: OpenWindow, *, is_watched: bool) -> None:
        """Place what a counter added since it was known last."""
        since = self.known_seconds[index]
        is_recent = second - since <= self.watch.longest_gap_seconds
        if is_recent:
            # Not worth a row of a window that is over.
            since = self.covered_second
        added = now - before
        if added < 0:
            self._reset(second, last)
            if not (is_watched and is_recent):
                return
            added = now
        if second - since > LONGEST_BRIDGE_SECONDS:
            last.see("ok", ("partial",))
        elif since >= last.start_second:
            last.count(index, added)
        else:
            for start, part in parts(added, since, second, self.watch.window_seconds):
                if part or start in self.windows:
                    self._window(start).count(index, part)

    def _reset(self, second: int, last: OpenWindow) -> None:
        if self.reset_second is None or second - self.reset_second > _ONE_RESET_SECONDS:
            self.driver_epoch += 1
        self.reset_second = second
        last.see("ok", ("reset",))
