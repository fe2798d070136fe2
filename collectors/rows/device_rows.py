"""What each device is, as a row when it is seen first and whenever that changes."""

from __future__ import annotations

from dataclasses import fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from fleet.errors import one_line
from fleet.telemetry import TEXT_LIMIT, DeviceRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collectors.samples import DeviceSample

_TOLD: Final = tuple(field.name for field in fields(DeviceRow) if field.name not in {"device", "seen_from_second"})
_identity_of: Final = attrgetter(
    "kind", "parent_uuid", "slot", "vendor", "model", "architecture", "driver", "pci_bus_id", "serial", "profile_hint",
    "memory_total_bytes",
)  # fmt: skip


class DeviceRows:
    """Remembers what was told of each device. A new process tells everything once."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[tuple[object, ...], DeviceRow]] = {}

    def changed(self, second: int, samples: Sequence[DeviceSample]) -> tuple[DeviceRow, ...]:
        """Return a row for each device that is new, or is something else than before.

        What a sample does not say is as before: a device that is lost is still the model that it was. One that is not
        named is forgotten.
        """
        rows = []
        named: dict[str, tuple[tuple[object, ...], DeviceRow]] = {}
        for sample in samples:
            device = sample.device
            # The hub takes no longer name, and a name cut short would be another's.
            if device is None or len(device) > TEXT_LIMIT or device in named:
                continue
            identity = _identity_of(sample)
            before = self._told.get(device)
            if before is not None and before[0] == identity:
                named[device] = before
                continue
            row = _row(device, second, sample, before and before[1])
            if before is not None and replace(row, seen_from_second=before[1].seen_from_second) == before[1]:
                row = before[1]
            else:
                rows.append(row)
            named[device] = (identity, row)
        self._told = named
        return tuple(rows)


def _row(device: str, second: int, sample: DeviceSample, before: DeviceRow | None) -> DeviceRow:
    memory = sample.memory_total_bytes
    row = DeviceRow(
        device=device,
        seen_from_second=second,
        kind=sample.kind,
        parent=_text(sample.parent_uuid),
        slot=_text(sample.slot),
        vendor=_text(sample.vendor),
        model=_text(sample.model),
        architecture=_text(sample.architecture),
        driver=_text(sample.driver),
        pci_bus_id=_text(sample.pci_bus_id),
        serial=_text(sample.serial),
        profile=_text(sample.profile_hint),
        memory_mebibytes=None if memory is None else memory >> 20,
    )
    if before is None:
        return row
    return replace(row, **{name: getattr(before, name) for name in _TOLD if getattr(row, name) is None})


def _text(text: str | None) -> str | None:
    return None if text is None else one_line(text)[:TEXT_LIMIT]
