"""CPU time and memory of a process and its children, from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds since the start, resident and proportional memory, summed over the processes."""

    cpu_seconds: float
    rss_mebibytes: float
    pss_mebibytes: float


def family(pid: int) -> list[int]:
    """A process and all its descendants that live."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        for tasks in Path("/proc", str(one), "task").glob("*/children"):
            waiting += [int(child) for child in tasks.read_text().split()]
    return found


def usage(pid: int) -> Usage:
    """What a process and its descendants use now."""
    cpu = rss = pss = 0.0
    for one in family(pid):
        fields = Path("/proc", str(one), "stat").read_text().rpartition(")")[2].split()
        cpu += (int(fields[11]) + int(fields[12])) / TICKS
        for line in Path("/proc", str(one), "smaps_rollup").read_text().splitlines():
            if line.startswith("Rss:"):
                rss += int(line.split()[1]) / 1024
            elif line.startswith("Pss:"):
                pss += int(line.split()[1]) / 1024
    return Usage(cpu, rss, pss)
