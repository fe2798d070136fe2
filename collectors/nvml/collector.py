"""The collector of NVIDIA devices through NVML, the library of their driver.

    nvml = Nvml()
    reading = nvml.collect()     # once a second: every board and MIG instance, and what was reported meanwhile

Boards are known by their UUID. One that falls off the bus, needs a reset, or is listed no more stays as a row that says
so, and is looked for once a minute; the others go on. A driver that is not there, or is replaced underneath us, ends
the visit with an error that says which.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from collectors.collector import RestartNeededError, SourceAbsentError
from collectors.nvml.board import Board
from collectors.nvml.port import NvmlPort
from collectors.nvml.reports import Reports
from collectors.nvml.values import (
    DeviceLostError,
    DeviceNeedsResetError,
    DriverAbsentError,
    DriverMismatchError,
)
from collectors.samples import Reading, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from collectors.nvml.port import NvmlDevice
    from collectors.samples import DeviceSample, State

PROBE_SECONDS: Final = 60.0
"""Between two attempts to find a board that is away: asking after a lost one can be slow."""


class Nvml:
    """All NVIDIA devices of this machine."""

    def __init__(
        self,
        *,
        slow_every: int = 15,
        host_pids: bool = False,
        open_port: Callable[[], NvmlPort] = NvmlPort.open,
        clock: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Each `slow_every`th visit reads all; with `host_pids` this process sees those of the host."""
        self._slow_every, self._host_pids = slow_every, host_pids
        self._open_port, self._clock, self._wall_ns = open_port, clock, wall_ns
        self._port: NvmlPort | None = None
        self._reports: Reports | None = None
        self._boards: dict[str, Board] = {}
        self._devices: dict[str, NvmlDevice] = {}
        self._count: int | None = None
        self._unknown = 0
        self._probe_at_seconds = 0.0
        self._visits = 0

    def collect(self) -> Reading:
        """Visit every device.

        SourceAbsentError without a driver, RestartNeededError when it was replaced, NvmlError when it refuses.
        """
        try:
            return self._visit()
        except DriverMismatchError as error:
            self.close()
            raise RestartNeededError(str(error)) from None
        except DriverAbsentError as error:
            self.close()
            raise SourceAbsentError(str(error)) from None

    def close(self) -> None:
        """Give back samples, event set and driver; the boards are remembered, should it come back."""
        for board in self._boards.values():
            board.close()
        reports, self._reports = self._reports, None
        if reports:
            reports.close()
        port, self._port = self._port, None
        if port:
            port.close()
        self._count = None

    def _visit(self) -> Reading:
        ts = self._wall_ns()
        port = self._port
        if port is None:
            port = self._port = self._open_port()
        if self._reports is None:
            self._reports = Reports(port, ts)
        reports = self._reports
        events = reports.drain(ts)
        count = port.count().value
        if self._count is None or self._is_probe_due() or (count is not None and count != self._count):
            self._enumerate(port, reports)
        for uuid in reports.cut & self._boards.keys():
            self._boards[uuid].is_cut_anew = True
        reports.cut.clear()
        refused: Counter[str] = Counter({"no_uuid": self._unknown})
        samples = self._visited(port, reports, ts, refused)
        if reports.is_spoilt:
            events += reports.renew(self._readable(), ts)
        self._visits += 1
        rejected = tuple(Rejected(reason, count) for reason, count in sorted(refused.items()) if count)
        return Reading(samples=tuple(samples), events=tuple(events), rejected=rejected)

    def _visited(self, port: NvmlPort, reports: Reports, ts: int, refused: Counter[str]) -> list[DeviceSample]:
        slow = self._visits % self._slow_every == 0
        rows: dict[str, list[DeviceSample] | None] = {}
        for uuid, board in self._boards.items():
            rows[uuid] = self._board_visited(board, ts, refused, slow=slow)
        if None in rows.values():  # a handle is not valid any more
            self._enumerate(port, reports)
            for board in [self._boards[uuid] for uuid, found in rows.items() if found is None]:
                board.trust_handle()
                rows[board.uuid] = self._board_visited(board, ts, refused, slow=slow)
        return [sample for found in rows.values() if found for sample in found]

    def _board_visited(self, board: Board, ts: int, refused: Counter[str], *, slow: bool) -> list[DeviceSample] | None:
        if board.away is None:
            try:
                return board.visit(ts, refused, slow=slow)
            except DeviceLostError:
                self._lose(board, "lost")
            except DeviceNeedsResetError:
                self._lose(board, "needs_reset")
        return board.samples_away(ts)

    def _lose(self, board: Board, state: State) -> None:
        board.lose(state)
        self._probe_at_seconds = self._clock() + PROBE_SECONDS

    def _is_probe_due(self) -> bool:
        is_away = self._unknown or any(board.away for board in self._boards.values())
        return bool(is_away) and self._clock() >= self._probe_at_seconds

    def _enumerate(self, port: NvmlPort, reports: Reports) -> None:
        """Look at the driver's list anew. A board that is not in it is lost, never forgotten."""
        slots = port.slots()
        self._count = len(slots)
        self._unknown = sum(slot.device is None for slot in slots)
        self._devices = {slot.device.uuid: slot.device for slot in slots if slot.device}
        self._probe_at_seconds = self._clock() + PROBE_SECONDS
        for uuid, device in self._devices.items():
            board = self._boards.get(uuid)
            if board is None:
                self._boards[uuid] = Board(port, device, host_pids=self._host_pids, clock=self._clock)
                reports.add(device)
            elif board.attach(port, device):
                reports.add(device)
        for uuid, board in self._boards.items():
            if uuid not in self._devices and board.away is None:
                self._lose(board, "lost")
        # A lost board may still be listed, without a name.
        self._unknown = max(0, self._unknown - sum(uuid not in self._devices for uuid in self._boards))

    def _readable(self) -> list[NvmlDevice]:
        return [device for uuid, device in self._devices.items() if self._boards[uuid].away is None]
