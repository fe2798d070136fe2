"""Devices second by second, as the tests of windows give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collectors.rows.windows import Windows
from collectors.samples import DeviceSample
from fleet.telemetry import QUALITY_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet.telemetry import DeviceWindowRow

RESET, STALE, ESTIMATED, REJECTED, PARTIAL = (
    QUALITY_BITS[flag] for flag in ("reset", "stale", "estimated", "rejected", "partial")
)


def gpu(uuid: str = "GPU-a", **values: Any) -> DeviceSample:
    return DeviceSample("gpu", uuid, **values)


def mig(slot: str, **values: Any) -> DeviceSample:
    return DeviceSample("mig", f"MIG-{slot}", parent_uuid="GPU-a", slot=slot, **values)


def walk(ticks: Mapping[int, Sequence[DeviceSample]], windows: Windows | None = None) -> list[DeviceWindowRow]:
    """All rows of some ticks, the open windows last."""
    windows = windows or Windows()
    rows = [row for second, samples in ticks.items() for row in windows.advance(second, samples)]
    return [*rows, *windows.close(max(ticks))]


def total(rows: Iterable[DeviceWindowRow], name: str) -> int | None:
    known = [value for row in rows if (value := getattr(row, name)) is not None]
    return sum(known) if known else None


def only(rows: Sequence[DeviceWindowRow]) -> DeviceWindowRow:
    (row,) = rows
    return row


def steady(seconds: Iterable[int], **values: Any) -> dict[int, list[DeviceSample]]:
    return {second: [gpu(**values)] for second in seconds}


def metered(*millijoules: int | None, **values: Any) -> dict[int, list[DeviceSample]]:
    """A meter, second by second from 0."""
    return {second: [gpu(energy_millijoules=read, **values)] for second, read in enumerate(millijoules)}
