"""A board as the collector keeps it between visits: its row, its instances, its meter, and how well it is.

A visit reads what changes each second; every few visits also what changes seldom, which stands in the row meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collectors.nvml.calls import LASTING
from collectors.nvml.instance import ACTIVITY, WHO, Instance, read_activity
from collectors.nvml.look import Look
from collectors.nvml.process_table import ProcessTable
from collectors.nvml.slow import NEED_RESET, health, identity, watts
from collectors.nvml.values import Reason
from collectors.samples import DeviceSample

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable

    from collectors.nvml.device import MigInstance, NvmlDevice
    from collectors.nvml.gpm import GpmMeter
    from collectors.nvml.port import NvmlPort
    from collectors.samples import DeviceProcess, Flag, State

STRIKES: Final = 3
"""Visits in a row on which the driver was in trouble with a board before it is called degraded."""
STALE_VISITS: Final = 5
"""Visits with the same energy while power is drawn; the meter moves ten times a second."""
WORKING_SHARE: Final = 0.2
"""Of the power limit: a device that idles draws less (H100: 70 of 700 W)."""
MICROSECOND: Final = 1000
SLOW_SECONDS: Final = 15


class Board:
    """One physical device."""

    def __init__(self, port: NvmlPort, device: NvmlDevice, *, host_pids: bool, clock: Callable[[], float]) -> None:
        """Nothing is asked before the first visit."""
        self.uuid = device.uuid
        self.away: State | None = None
        """`lost` or `needs_reset` while it cannot be read."""
        self.is_cut_anew = True
        """Its instances have to be listed again."""
        self._port, self._device, self._clock = port, device, clock
        self._row: dict[str, Any] = {"kind": "gpu", "uuid": device.uuid, "vendor": "nvidia"}
        self._table = ProcessTable(host_pids=host_pids)
        self._processes: tuple[DeviceProcess, ...] | None = None
        self._instances: list[Instance] = []
        self._last_instances: list[Instance] = []
        self._is_cut: bool | None = None
        self._meter: GpmMeter | None = None
        self._is_slow_due = True
        self._is_trusted = False
        self._is_corrupted = False
        self._strikes = {"light": 0, "slow": 0}
        self._energy: tuple[int | None, int] = (None, 0)

    def attach(self, port: NvmlPort, device: NvmlDevice) -> bool:
        """Take the handle that the driver gives for the board now; whether it is another, or the board was away."""
        if self.away is None and port is self._port and device.address == self._device.address:
            self._device.index = device.index
            return False
        self.close()
        self._port, self._device = port, device
        self.away, self._is_cut, self.is_cut_anew, self._is_slow_due = None, None, True, True
        self._port.forget(self.uuid)
        return True

    def trust_handle(self) -> None:
        """The driver just gave this handle: a call that refuses it is the call's trouble, until the next slow visit."""
        self._is_trusted = True

    def lose(self, state: State) -> None:
        """The board cannot be read: it stays as a row without readings, and its instances too."""
        self.away = state
        # A board that is taken back and lost again was not listed in between.
        self._last_instances = self._instances or self._last_instances
        self.close()

    def close(self) -> None:
        """Give back all meters; instances are listed anew afterwards."""
        if self._meter:
            self._meter.close()
            self._meter = None
        self._drop(self._instances)
        self._instances, self.is_cut_anew = [], True

    def samples_away(self, ts_nanoseconds: int) -> list[DeviceSample]:
        """The rows of a board that is lost or needs a reset."""
        state = self.away or "lost"
        known = {name: self._row[name] for name in WHO if name in self._row}
        board = DeviceSample(state=state, ts_nanoseconds=ts_nanoseconds, **known)
        return [board, *(instance.lost(state, ts_nanoseconds) for instance in self._last_instances)]

    def visit(self, ts_nanoseconds: int, refused: Counter[str], *, slow: bool) -> list[DeviceSample] | None:
        """Read the board and its instances; None when the driver does not know its handle any more.

        DeviceLostError, DeviceNeedsResetError and errors of the whole driver come from whichever call notices.
        """
        look = Look()
        self._read_light(look)
        if look.is_gone and not self._is_trusted:
            return None
        if slow:
            self._is_trusted = False
        if slow or self._is_slow_due:
            self._read_slow(ts_nanoseconds, refused)
        self._read_instances(look, refused)
        refused.update(look.refused)
        self._strike("light", look)
        state = self._state()
        self._row["quality"] = self._quality(look)
        board = DeviceSample(state=state, ts_nanoseconds=ts_nanoseconds, **self._row)
        return [board, *(instance.sample(state, ts_nanoseconds) for instance in self._instances)]

    def _read_light(self, look: Look) -> None:
        device, row = self._device, self._row
        reading = device.mig_mode()
        mode = look.value(reading)
        is_cut = mode.enabled if mode else False
        if mode is None and reading.reason not in LASTING and self._is_cut is not None:
            is_cut = self._is_cut  # not told just now: a board does not change for that
        if is_cut is not self._is_cut:
            if self._is_cut is not None:
                self._port.forget(self.uuid)
            self._is_cut, self.is_cut_anew = is_cut, True
        # A board that is cut has no such reading; where a driver answers 0 all the same, it is not idle.
        percent = None if is_cut else look.value(device.utilization().gpu_percent)
        row["busy_ratio"] = None if percent is None else percent / 100
        memory = look.value(device.memory())
        row["memory_total_bytes"] = memory.total_bytes if memory else None
        row["memory_used_bytes"] = memory.used_bytes if memory else None
        row["memory_reserved_bytes"] = memory.reserved_bytes.value if memory else None
        row["power_watts"] = watts(look.value(device.power_mw()))
        row["energy_millijoules"] = look.value(device.energy_mj())
        row["sm_megahertz"] = look.value(device.clock_mhz("sm"))
        row["throttle_bits"] = look.value(device.throttle_bits())
        if self._meter is None:
            self._meter = self._port.gpm(device, self._clock)
            self._meter.__enter__()
        read_activity(self._meter, row, look)

    def _read_slow(self, ts_nanoseconds: int, refused: Counter[str]) -> None:
        look = Look()
        device = self._device
        if self._meter and self._meter.is_absent:
            self._meter.close()
            self._meter = None  # begun again at the next visit: what it lacks may have passed
        self._row |= identity(device, self._port.driver_version().value, look)
        self._row |= health(device, look)
        since_us = ts_nanoseconds // MICROSECOND - SLOW_SECONDS * 1_000_000
        self._processes = self._table.read(device, look, since_us)
        self.is_cut_anew = self.is_cut_anew or bool(self._is_cut)
        self._is_corrupted = look.is_corrupted
        self._strike("slow", look)
        refused.update(look.refused)
        self._is_slow_due = False
        self._share_processes()

    def _read_instances(self, look: Look, refused: Counter[str]) -> None:
        """Read each instance; where one has gone, list them again and read those that there are."""
        for _ in range(2):
            if self.is_cut_anew:
                self._cut_anew(look)
            inner = [Look() for _ in self._instances]
            for instance, its_look in zip(self._instances, inner, strict=True):
                instance.read(its_look)
            if not any(its_look.is_gone for its_look in inner):
                break
            self.is_cut_anew = True
        for its_look in inner:
            refused.update(its_look.refused)
            look.is_transient = look.is_transient or its_look.is_transient

    def _cut_anew(self, look: Look) -> None:
        """List the instances. Half a list is no list: then the old one stands, and is asked for again next time."""
        if not self._is_cut:
            self._last_instances = []
            self._drop(self._instances)
            self._instances, self.is_cut_anew = [], False
            self._share_processes()
            return
        reading = self._device.mig_instances()
        found = look.value(reading)
        if found is None:
            self.is_cut_anew = reading.reason is not Reason.NOT_SUPPORTED
            return
        old = {(each.uuid, each.gpu_instance_id, each.compute_instance_id): each for each in self._instances}
        kept = {place: old.pop(place) for mig in found if (place := _place(mig)) in old}
        self._drop(old.values())
        self._instances = list(kept.values())  # so that none is forgotten should the board be lost just now
        self._instances = [kept.get(_place(mig)) or Instance(self._port, mig, look, self._clock) for mig in found]
        ids = [each.gpu_instance_id for each in self._instances]
        for each in self._instances:
            each.shares_its_meter = ids.count(each.gpu_instance_id) > 1
        self._last_instances = []
        self.is_cut_anew = False
        self._share_processes()

    def _share_processes(self) -> None:
        """Tell each instance what the board knows of it, and keep in the board's row what is in no instance."""
        for instance in self._instances:
            instance.follow(self._row, self._processes)
        ids = {instance.gpu_instance_id for instance in self._instances}
        own = self._processes
        self._row["processes"] = None if own is None else tuple(each for each in own if each.gpu_instance_id not in ids)

    def _drop(self, instances: Iterable[Instance]) -> None:
        for instance in instances:
            instance.close()

    def _strike(self, kind: str, look: Look) -> None:
        self._strikes[kind] = self._strikes[kind] + 1 if look.is_transient else 0

    def _state(self) -> State:
        action = self._row.get("recovery_action") or "none"
        if action in NEED_RESET:
            return "needs_reset"
        is_struck = max(self._strikes.values()) >= STRIKES
        is_degraded = action != "none" or self._row.get("remap_has_failed") or self._is_corrupted or is_struck
        return "degraded" if is_degraded else "ok"

    def _quality(self, look: Look) -> tuple[Flag, ...]:
        """The doubts about this visit's row; what the profiling unit says while it is stuck is taken out."""
        row = self._row
        flags: list[Flag] = []
        power, limit = row["power_watts"], row.get("power_limit_watts")
        profiled = [row[name] for name in ACTIVITY if row[name] is not None]
        works = power is not None and (limit is None or power > limit * WORKING_SHARE)
        if row["busy_ratio"] == 1 and works and profiled and not any(profiled):
            flags.append("profiling_stuck")
            row.update(dict.fromkeys(ACTIVITY))
        if look.is_unbelievable:
            flags.append("rejected")
        energy, times = self._energy
        now = row["energy_millijoules"]
        self._energy = (now, times + 1 if now is not None and now == energy else 1)
        if self._energy[1] >= STALE_VISITS and (power or 0) > 0:
            flags.append("stale")
        return tuple(flags)


def _place(mig: MigInstance) -> tuple[str, int, int]:
    return mig.device.uuid, mig.gpu_instance_id, mig.compute_instance_id
