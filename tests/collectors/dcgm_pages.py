"""Recorded and written pages of dcgm-exporter, read as the agent reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from collectors.dcgm.collector import Dcgm
from collectors.steps import steps

if TYPE_CHECKING:
    from collectors.samples import DeviceSample, Reading

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "dcgm"
UUID = "GPU-a0000000-1111-2222-3333-444455556666"


def recorded(name: str) -> Reading:
    """The reading of a recorded page."""
    return Dcgm(str(FIXTURES / f"{name}.prom")).collect()


def page(*lines: str) -> Reading:
    """The reading of a page whose lines are `NAME{more labels} value`; every series is of one GPU."""
    written = [line.replace("{", f'{{UUID="{UUID}",gpu="0",', 1) for line in lines]
    return Dcgm("page").read("\n".join(written))


def only(reading: Reading) -> DeviceSample:
    """The single device of a reading."""
    (sample,) = reading.samples
    return sample


def counts(reading: Reading) -> dict[str, int]:
    """What was refused, by reason."""
    return {rejected.reason: rejected.count for rejected in reading.rejected}


def step(*readings: Reading) -> Reading:
    """The last step between readings in time order."""
    return steps(readings)[-1]
