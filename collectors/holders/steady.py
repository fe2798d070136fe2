"""What each process uses, kept as it was for the rest of a window.

Users divide a device by what they use, and that changes with each look at it. Followed look by look there would be a
row for each, and nothing that anybody could check; so what counts is how it stood when the set of processes changed
last, or when the window began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fleet.telemetry import WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collectors.samples import DeviceProcess, DeviceSample

_Processes: TypeAlias = "tuple[DeviceProcess, ...]"


class SteadyProcesses:
    """The processes of devices as they were settled last."""

    def __init__(self, window_seconds: int = WINDOW_SECONDS) -> None:
        """Nothing is settled yet."""
        self._window_seconds = window_seconds
        self._window: int | None = None
        self._settled: dict[str, _Processes | None] = {}

    def settled(self, second: int, samples: Iterable[DeviceSample]) -> Mapping[str, _Processes | None]:
        """The processes on each device by its name, to be divided by; None where they are not known."""
        window = second // self._window_seconds
        before = self._settled if window == self._window else {}
        settled: dict[str, _Processes | None] = {}
        for sample in samples:
            if sample.device is None:
                continue
            now, known = sample.processes, before.get(sample.device)
            is_same = now is not None and known is not None and (now == known or _who(now) == _who(known))
            settled[sample.device] = known if is_same else now
        self._window, self._settled = window, settled
        return settled


def _who(processes: _Processes) -> frozenset[tuple[int, int | None, int | None]]:
    return frozenset((each.pid, each.gpu_instance_id, each.compute_instance_id) for each in processes)
