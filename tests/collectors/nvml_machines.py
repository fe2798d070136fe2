"""What the tests of the NVML collector share: a clock to turn, machines of several shapes, a visit at a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collectors.nvml.collector import Nvml
from tests.nvml_shim.machine import GIB, h100

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.samples import DeviceSample, Reading

START_NS = 1_800_000_000_000_000_000
METERED = {"*.gpm_step_ms": 1000}
"""The library's own clock moves a second with each sample, so no test has to wait."""


@dataclass
class Clock:
    """The collector's time, turned by hand."""

    seconds: float = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def wall_ns(self) -> int:
        return START_NS + round((self.seconds - 1000) * 1e9)


class Watched:
    """A collector that is visited once a second of its clock."""

    def __init__(self, *, slow_every: int = 15, host_pids: bool = False) -> None:
        self.clock = Clock()
        self.nvml = Nvml(
            slow_every=slow_every, host_pids=host_pids, clock=self.clock.monotonic, wall_ns=self.clock.wall_ns
        )

    def visit(self, seconds: float = 1) -> Reading:
        self.clock.seconds += seconds
        return self.nvml.collect()

    def rows(self, seconds: float = 1) -> dict[str, DeviceSample]:
        """A visit's rows by device."""
        return {sample.device or "": sample for sample in self.visit(seconds).samples}


def activity(prefix: str, sm: float = 41.5) -> dict[str, object]:
    return {f"{prefix}.gpm2": sm, f"{prefix}.gpm3": 20.25, f"{prefix}.gpm5": 12.5, f"{prefix}.gpm10": 77}


def mig_uuid(board: int, slot: int) -> str:
    return f"MIG-{board:04x}{slot:04x}-0000-5000-8000-000000000000"


def instance(board: int, slot: int, gi: int, size: tuple[int, int, int, int], ci: int = 0) -> Mapping[str, object]:
    """A MIG instance; its size is multiprocessors, GPU slices, compute slices, GiB."""
    sms, gpu_slices, compute_slices, gib = size
    facts = {
        "uuid": mig_uuid(board, slot),
        "gi": gi,
        "ci": ci,
        "attributes": f"{sms} {gpu_slices} {compute_slices} {gib * 1024}",
        "mem_total": gib * GIB,
        "mem_used": GIB,
    }
    return {f"{board}.mig{slot}.{key}": value for key, value in facts.items()}


def cut(board: int) -> dict[str, object]:
    """A board in MIG mode: the driver tells no utilisation of it, nor what each process used."""
    return {
        f"{board}.mig_mode": 1,
        f"{board}.mig_pending": 1,
        f"{board}.mig_max": 7,
        f"{board}.util_gpu": "!3",
        f"{board}.putil": "!3",
    }


def seven(board: int) -> dict[str, object]:
    """Seven instances of one slice each, each of them measured."""
    facts: dict[str, object] = dict(cut(board))
    for slot in range(7):
        facts |= instance(board, slot, slot + 7, (16, 1, 1, 10))
        facts |= activity(f"{board}.gi{slot + 7}", sm=10 * slot)
    return facts


def dgx(boards: int = 8) -> dict[str, object]:
    """A machine of H100s."""
    facts: dict[str, object] = {"*.count": boards, "*.driver": "550.127.08", **METERED}
    for board in range(boards):
        facts |= h100(board) | activity(str(board))
    return facts
