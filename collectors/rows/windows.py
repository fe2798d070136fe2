"""Integrate what devices say, second by second, into the windows that go to the lake.

    windows = Windows()
    rows = windows.advance(second, samples)     # at each whole second; the rows of windows that are over
    rows = windows.close(second)                # when the agent stops

The time from the second before to this one counts with the values of now. `window_ms` is the part of a window that a
row accounts for: mostly all of it, less when a device came, went, or the agent stopped within it. Rows of the same
device and window add up; so a counter that could not be read for a while brings rows of `window_ms` 0 for the windows
that are over, with what it added in each.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from collectors.rows.device_track import DeviceTrack, Watch
from collectors.rows.seconds import LONGEST_BRIDGE_SECONDS, Clock
from fleet.telemetry import TEXT_LIMIT, WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collectors.samples import DeviceSample
    from fleet.telemetry import DeviceWindowRow

_STATE_VERSION = 1
_DEVICE_LIMIT = 1024
"""No node has so many; a source that makes up names must not fill the memory."""


class Windows:
    """The open windows of a node's devices. `state` lets a later process of the same boot go on from here."""

    def __init__(
        self,
        window_seconds: int = WINDOW_SECONDS,
        longest_gap_seconds: int = 5,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin anew, or from a state; one that cannot be read is as none.

        A longer gap between two samples of a device is time in which nobody looked: only counters bridge it.
        """
        self._watch = Watch(window_seconds, longest_gap_seconds)
        self._visit = 0
        self._clock, self._tracks = _resumed(state, self._watch)

    @property
    def rejected(self) -> Mapping[str, int]:
        """How much was not believed, by reason: `range`, `implausible_energy` and `too_many_devices`."""
        return self._watch.rejected

    def advance(self, second: int, samples: Sequence[DeviceSample]) -> tuple[DeviceWindowRow, ...]:
        """Take the devices as they are at a second, counters as totals; return the rows of windows that are over.

        A device that is not named is not there. A part of a board is then gone, and its window ends with what it has; a
        board is expected back. A device without a name is left out.
        """
        self._visit += 1
        rows: list[DeviceWindowRow] = []
        if self._clock.has_returned(second):
            rows += self._begun_anew(second)
        for sample in samples:
            device = sample.device
            # The hub takes no longer name, and a name cut short would be another's.
            if device is None or len(device) > TEXT_LIMIT:
                continue
            track = self._tracks.get(device)
            if track is None and len(self._tracks) >= _DEVICE_LIMIT:
                self._watch.rejected["too_many_devices"] += 1
                continue
            if track is None:
                track = self._tracks[device] = DeviceTrack.begin(self._watch, sample, second)
            else:
                track.advance(sample, second)
            track.visit = self._visit
        rows += self._over(second)
        return _sorted(rows)

    def close(self, second: int) -> tuple[DeviceWindowRow, ...]:
        """Return all windows that have begun by this second, as far as they go: the agent stops.

        Time since the last samples is not in them. The next process goes on from the state, which is to be taken after.
        """
        until = second + self._watch.window_seconds
        return _sorted(row for device, track in self._tracks.items() for row in track.taken(device, until))

    def state(self) -> dict[str, Any]:
        """All that is known of the devices, as plain values for JSON; to be kept with the rows returned so far."""
        return {
            "version": _STATE_VERSION,
            "clock": asdict(self._clock),
            "devices": {device: track.state() for device, track in self._tracks.items()},
        }

    def epochs(self) -> dict[str, int]:
        """How often the counters of each device began again."""
        return {device: track.driver_epoch for device, track in self._tracks.items()}

    def estimated_millijoules(self) -> dict[str, int]:
        """The energy of devices that have no meter, from power, since they were first seen."""
        return {
            device: track.meter.estimated_millijoules
            for device, track in self._tracks.items()
            if track.meter.total_millijoules is None and track.meter.estimated_millijoules
        }

    def _over(self, second: int) -> list[DeviceWindowRow]:
        rows: list[DeviceWindowRow] = []
        gone = []
        for device, track in self._tracks.items():
            late = second - track.covered_second
            if track.visit != self._visit and (track.is_part or late > LONGEST_BRIDGE_SECONDS):
                gone.append(device)
                rows += track.taken(device, max(second, track.covered_second) + self._watch.window_seconds)
                continue
            # A device that only repeated itself may still cover the rest of its window.
            is_waiting = track.visit == self._visit and 0 < late <= self._watch.longest_gap_seconds
            rows += track.taken(device, track.covered_second if is_waiting else second)
        for device in gone:
            del self._tracks[device]
        return rows

    def _begun_anew(self, second: int) -> list[DeviceWindowRow]:
        """The clock is back from a jump: what was covered meanwhile is done, and covering goes on from here."""
        rows: list[DeviceWindowRow] = []
        for device, track in self._tracks.items():
            rows += track.taken(device, track.covered_second + self._watch.window_seconds)
            track.begin_anew(second)
        return rows


def _sorted(rows: Iterable[DeviceWindowRow]) -> tuple[DeviceWindowRow, ...]:
    return tuple(sorted(rows, key=lambda row: (row.device, row.window_start_second)))


def _resumed(state: Mapping[str, Any] | None, watch: Watch) -> tuple[Clock, dict[str, DeviceTrack]]:
    if not state or state.get("version") != _STATE_VERSION or not _is_of_whole_numbers(state):
        return Clock(), {}
    try:
        clock = Clock(**state["clock"])
        return clock, {device: DeviceTrack.resumed(watch, known) for device, known in state["devices"].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        # Left by another version: nothing is bridged, as after a boot.
        return Clock(), {}


def _is_of_whole_numbers(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_of_whole_numbers, value.values()))
    if isinstance(value, list):
        return all(map(_is_of_whole_numbers, value))
    return value is None or isinstance(value, int)
