"""A MIG instance as the collector keeps it between visits: its row, its meter, and what size it is.

An instance has memory and activity of its own; power, energy, clocks and errors are the board's. How busy it is in
the driver's old sense (`busy_ratio`) nobody measures for an instance: it stays unknown, never 0.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from collectors.samples import DeviceSample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collectors.nvml.device import MigInstance
    from collectors.nvml.gpm import GpmMeter
    from collectors.nvml.look import Look
    from collectors.nvml.port import NvmlPort
    from collectors.nvml.values import MigAttributes
    from collectors.samples import DeviceProcess, Flag, State

ACTIVITY: Final = ("sm_ratio", "occupancy_ratio", "tensor_ratio", "dram_ratio")
GIB: Final = 2**30
EIGHTHS: Final = 8
PROFILE_IN_NAME: Final = re.compile(r" MIG ((?:\d+c\.)?\d+g\.\d+gb(?:[+-][\w.]+)?)$")


def read_activity(meter: GpmMeter, row: dict[str, Any], look: Look) -> None:
    """Put into a row how busy the parts of a device were since the visit before; None where that is not known."""
    found = meter.activity()
    activity = None if found is None else look.value(found)
    if activity is None:
        for name in ACTIVITY:
            row[name] = None
        return
    sm, occupancy, tensor, dram, absent = activity
    row["sm_ratio"] = None if sm is None else sm / 100
    row["occupancy_ratio"] = None if occupancy is None else occupancy / 100
    row["tensor_ratio"] = None if tensor is None else tensor / 100
    row["dram_ratio"] = None if dram is None else dram / 100
    for reading in absent:
        look.value(reading)


class Instance:
    """One MIG instance of a board."""

    def __init__(self, port: NvmlPort, mig: MigInstance, look: Look, clock: Callable[[], float]) -> None:
        """Ask what size it is, and begin to measure."""
        self.uuid = mig.device.uuid
        self.gpu_instance_id = mig.gpu_instance_id
        self.compute_instance_id = mig.compute_instance_id
        self.shares_its_meter = False
        """Other compute instances live in the same GPU instance, and activity is told for all of them together."""
        self._port, self._clock = port, clock
        self._device = mig.device
        self._size = look.value(mig.device.mig_attributes())
        self._name = look.value(mig.device.name())
        self._row: dict[str, Any] = {
            "kind": "mig",
            "uuid": self.uuid,
            "parent_uuid": mig.parent.uuid,
            "slot": str(mig.gpu_instance_id),
            "vendor": "nvidia",
            "gpu_instance_id": mig.gpu_instance_id,
            "compute_instance_id": mig.compute_instance_id,
            "compute_slices": self._size.compute_slices if self._size else None,
            "placement_start": look.value(mig.parent.placement_start(mig.gpu_instance_id)),
        }
        self._meter = port.gpm(mig, clock)
        self._meter.__enter__()

    def follow(self, board: Mapping[str, Any], processes: tuple[DeviceProcess, ...] | None) -> None:
        """Take over what the board's row says of its instances too, and the processes in this one."""
        for name in ("model", "driver", "pci_bus_id", "architecture", "serial", "minor_number"):
            self._row[name] = board.get(name)
        self._row["processes"] = None if processes is None else tuple(map_instance(processes, self))
        if self._size:
            self._row["profile_hint"] = profile(self._name, self._size, board.get("memory_total_bytes"))

    def read(self, look: Look) -> None:
        """Read memory and activity."""
        memory = look.value(self._device.memory())
        row = self._row
        row["memory_total_bytes"] = memory.total_bytes if memory else None
        row["memory_used_bytes"] = memory.used_bytes if memory else None
        row["memory_reserved_bytes"] = memory.reserved_bytes.value if memory else None
        read_activity(self._meter, row, look)
        flags: tuple[Flag, ...] = ("estimated",) if self.shares_its_meter and row["sm_ratio"] is not None else ()
        row["quality"] = (*flags, "rejected") if look.is_unbelievable else flags

    def sample(self, state: State, ts_nanoseconds: int) -> DeviceSample:
        """The row as it stands."""
        return DeviceSample(state=state, ts_nanoseconds=ts_nanoseconds, **self._row)

    def lost(self, state: State, ts_nanoseconds: int) -> DeviceSample:
        """Who the instance is, without any reading: its board cannot be read."""
        return DeviceSample(
            state=state, ts_nanoseconds=ts_nanoseconds, **{name: self._row[name] for name in WHO if name in self._row}
        )

    def close(self) -> None:
        """Give the meter back, and forget what this instance did not support."""
        self._meter.close()
        self._port.forget(self.uuid)


WHO: Final = (
    "kind", "uuid", "parent_uuid", "slot", "vendor", "model", "profile_hint", "driver", "pci_bus_id", "architecture",
    "serial", "minor_number", "gpu_instance_id", "compute_instance_id", "compute_slices", "placement_start",
)  # fmt: skip
"""What stays true of a device that cannot be read."""


def map_instance(processes: tuple[DeviceProcess, ...], instance: Instance) -> list[DeviceProcess]:
    """The processes of a board that run in one of its instances."""
    place = instance.gpu_instance_id, instance.compute_instance_id
    return [each for each in processes if (each.gpu_instance_id, each.compute_instance_id) == place]


def profile(name: str | None, size: MigAttributes, board_bytes: int | None) -> str | None:
    """The profile such as `3g.40gb`: from the instance's own name, else from its size.

    The gigabytes of a profile are eighths of the board's memory, rounded; that is how NVIDIA's tools name them.
    """
    if name and (found := PROFILE_IN_NAME.search(name)):
        return found[1]
    if not board_bytes:
        return None
    eighths = math.ceil(size.memory_bytes / board_bytes * EIGHTHS)
    gigabytes = round(eighths / EIGHTHS * math.ceil(board_bytes / GIB))
    part = f"{size.compute_slices}c." if size.compute_slices < size.gpu_slices else ""
    return f"{part}{size.gpu_slices}g.{gigabytes}gb"
