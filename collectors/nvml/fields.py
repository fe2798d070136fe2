"""Values that NVML gives by number, many in one call: the counters that a collector wants at each tick."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from collectors.nvml import values as values
from collectors.nvml.values import NONE_32, NONE_64, Reading, Reason, checked, unsigned_celsius

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collectors.nvml.calls import Calls

CALL: Final = "nvmlDeviceGetFieldValues"
UNION_MEMBERS: Final = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""Which member of a field's union is filled, by its value type."""


class Field(Enum):
    """Values that are fetched together in one call: NVML's field id, scope, and factor to the unit."""

    ECC_CORRECTED_VOLATILE_ERRORS = (3, 0, 1)
    ECC_UNCORRECTED_VOLATILE_ERRORS = (4, 0, 1)
    ECC_CORRECTED_AGGREGATE_ERRORS = (5, 0, 1)
    ECC_UNCORRECTED_AGGREGATE_ERRORS = (6, 0, 1)
    RETIRED_CORRECTED_PAGES = (29, 0, 1)
    RETIRED_UNCORRECTED_PAGES = (30, 0, 1)
    THROTTLED_BY_POWER_NS = (74, 0, 1)
    THROTTLED_BY_HEAT_NS = (75, 0, 1)
    MEMORY_TEMPERATURE_CELSIUS = (82, 0, 1)
    ENERGY_MJ = (83, 0, 1)
    PCIE_REPLAY_EVENTS = (94, 0, 1)
    NVLINK_TX_BYTES = (138, NONE_32, 1024)
    NVLINK_RX_BYTES = (139, NONE_32, 1024)
    POWER_AVERAGE_MW = (185, 0, 1)
    POWER_INSTANT_MW = (186, 0, 1)
    PCIE_TX_BYTES = (197, 0, 1)
    PCIE_RX_BYTES = (198, 0, 1)
    RECOVERY_ACTION_CODE = (230, 0, 1)
    THROTTLED_BY_SOFTWARE_HEAT_NS = (269, 0, 1)
    THROTTLED_BY_HARDWARE_HEAT_NS = (270, 0, 1)
    THROTTLED_BY_POWER_BRAKE_NS = (271, 0, 1)

    @property
    def range(self) -> tuple[int, int]:
        """What can be believed."""
        if self.name.endswith("_CELSIUS"):
            return values.CELSIUS_RANGE
        return values.POWER_MW_RANGE if self.name.endswith("_MW") else values.COUNT_RANGE


def field_values(calls: Calls, uuid: str, handle: Any, wanted: Iterable[Field]) -> dict[Field, Reading[int]]:
    """Each field with its own success or reason; what a device does not have is not asked for again."""
    known = {field: calls.remembered(uuid, CALL, field.value[:2]) for field in wanted}
    asked = [field for field, reading in known.items() if reading is None]
    result: dict[Field, Reading[int]] = {field: reading for field, reading in known.items() if reading is not None}
    if not asked:
        return result
    found = calls.read(uuid, CALL, handle, [field.value[:2] for field in asked])
    if found.reason:
        return result | {field: found.absent() for field in asked}
    return result | {field: _field(calls, uuid, field, raw) for field, raw in zip(asked, found.known, strict=True)}


def _field(calls: Calls, uuid: str, field: Field, raw: Any) -> Reading[int]:
    """One field: its own return code first, then the member of the union that its type names."""
    if raw.nvmlReturn:
        absent: Reading[int] = calls.judged(uuid, raw.nvmlReturn)
        calls.remember(uuid, CALL, field.value[:2], absent)
        return absent
    member = UNION_MEMBERS.get(raw.valueType)
    if member is None:
        return Reading(None, Reason.UNKNOWN)
    if field is Field.MEMORY_TEMPERATURE_CELSIUS:
        return unsigned_celsius(Reading(getattr(raw.value, member)))
    none = NONE_32 if member in {"uiVal", "siVal"} else NONE_64
    found = checked(Reading(getattr(raw.value, member)), field.range, none=none)
    return found if found.value is None else Reading(int(found.value) * field.value[2])
