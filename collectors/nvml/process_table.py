"""Which processes are on a board, as fields of samples: by board, or by MIG instance where it is cut.

A process is named once: in the row of the instance that it runs in, else in the board's. So a sum over rows is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collectors.nvml.calls import LASTING
from collectors.nvml.processes import host_has_pid
from collectors.samples import DeviceProcess

if TYPE_CHECKING:
    from collectors.nvml.device import NvmlDevice
    from collectors.nvml.look import Look
    from collectors.nvml.values import Process

_AHEAD_US: Final = 60_000_000
"""A sample so far ahead of the time that was asked for is noise, or the clock was set back."""
KINDS: Final = ("compute", "graphics", "mps")
_Key = tuple[int, int | None, int | None]


class ProcessTable:
    """The processes of one board, and how much each used since they were read before."""

    def __init__(self, *, host_pids: bool) -> None:
        """With `host_pids` the host's processes can be seen here, so that noise in the driver's list is told apart."""
        self._pid_exists = host_has_pid if host_pids else None
        self._seen_until_us = 0

    def read(self, device: NvmlDevice, look: Look, since_us: int) -> tuple[DeviceProcess, ...] | None:
        """The processes now, None where the driver does not tell; shares are since `since_us` or the last read."""
        rows: dict[_Key, Process] = {}
        is_known = False
        for kind in KINDS:
            reading = device.processes(kind, self._pid_exists)
            listed = look.value(reading)
            if listed is None:
                if reading.reason not in LASTING:
                    return None  # half a list is no list
                continue
            is_known = True
            look.refused["process"] += listed.rejected_rows
            for row in listed.rows:
                rows.setdefault((row.pid, row.gpu_instance_id, row.compute_instance_id), row)
        if not is_known:
            return None
        shares = self._shares(device, look, since_us) if rows else None
        return tuple(
            DeviceProcess(
                row.pid,
                row.memory_bytes,
                # On a device that tells who used it, a process without a sample used nothing.
                None if shares is None else shares.get(row.pid, 0.0),
                row.gpu_instance_id,
                row.compute_instance_id,
            )
            for row in rows.values()
        )

    def _shares(self, device: NvmlDevice, look: Look, since_us: int) -> dict[int, float] | None:
        """The mean of each process' samples; None where the device does not tell (MIG)."""
        latest_us = since_us + _AHEAD_US
        if self._seen_until_us > latest_us:
            self._seen_until_us = 0
        found = look.value(device.process_samples(max(since_us, self._seen_until_us), self._pid_exists))
        if found is None:
            return None
        look.refused["process"] += found.rejected_rows
        percents: dict[int, list[int]] = {}
        for sample in found.rows:
            if sample.timestamp_us > latest_us:
                look.refused["process"] += 1
                continue
            percents.setdefault(sample.pid, []).append(sample.sm_percent)
            self._seen_until_us = max(self._seen_until_us, sample.timestamp_us)
        return {pid: sum(each) / len(each) / 100 for pid, each in percents.items()}
