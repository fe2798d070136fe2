"""What changes seldom on a device, or costs much to ask: read every few visits, standing in the row in between.

Each function returns fields of `DeviceSample` by name. Counters and errors come in one batch from the driver; where an
old one does not know them by number, from the call of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collectors.dcgm.fields import RECOVERY_ACTIONS
from collectors.nvml.fields import Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.nvml.device import NvmlDevice
    from collectors.nvml.look import Look
    from collectors.nvml.values import Reading

FIELDS: Final[Mapping[Field, str]] = {
    Field.ECC_CORRECTED_VOLATILE_ERRORS: "ecc_corrected_volatile_errors",
    Field.ECC_UNCORRECTED_VOLATILE_ERRORS: "ecc_uncorrected_volatile_errors",
    Field.ECC_CORRECTED_AGGREGATE_ERRORS: "ecc_corrected_aggregate_errors",
    Field.ECC_UNCORRECTED_AGGREGATE_ERRORS: "ecc_uncorrected_aggregate_errors",
    Field.THROTTLED_BY_POWER_NS: "throttle_power_nanoseconds",
    Field.THROTTLED_BY_HEAT_NS: "throttle_thermal_nanoseconds",
    Field.THROTTLED_BY_SOFTWARE_HEAT_NS: "throttle_software_thermal_nanoseconds",
    Field.THROTTLED_BY_HARDWARE_HEAT_NS: "throttle_hardware_thermal_nanoseconds",
    Field.THROTTLED_BY_POWER_BRAKE_NS: "throttle_power_brake_nanoseconds",
    Field.MEMORY_TEMPERATURE_CELSIUS: "memory_temperature_celsius",
    Field.PCIE_TX_BYTES: "pcie_tx_bytes",
    Field.PCIE_RX_BYTES: "pcie_rx_bytes",
    Field.NVLINK_TX_BYTES: "nvlink_tx_bytes",
    Field.NVLINK_RX_BYTES: "nvlink_rx_bytes",
    Field.PCIE_REPLAY_EVENTS: "pcie_replay_events",
}
"""Values of the batch that are fields of a sample as they are."""
DERIVED: Final = (
    Field.RETIRED_CORRECTED_PAGES,
    Field.RETIRED_UNCORRECTED_PAGES,
    Field.POWER_INSTANT_MW,
    Field.RECOVERY_ACTION_CODE,
)
REMAPPED: Final = ("remapped_corrected_rows", "remapped_uncorrected_rows", "remap_is_pending", "remap_has_failed")
NEED_RESET: Final = ("gpu_reset", "drain_and_reset", "bus_reset")


def identity(device: NvmlDevice, driver: str | None, look: Look) -> dict[str, Any]:
    """Who a board is; its slot is the driver's index of today."""
    found = device.identity()
    return {
        "slot": str(found.index),
        "model": look.value(found.name),
        "driver": driver,
        "pci_bus_id": look.value(found.pci_bus_id),
        "architecture": look.value(found.architecture),
        "serial": look.value(found.serial),
        "minor_number": look.value(found.minor_number),
    }


def health(device: NvmlDevice, look: Look) -> dict[str, Any]:
    """Temperatures, limits, errors, links, and what the driver says must be done."""
    found = device.fields((*FIELDS, *DERIVED))
    found |= _by_their_own_calls(device, found)
    values: dict[str, Any] = {name: look.value(found[field]) for field, name in FIELDS.items()}
    values |= {
        "power_instant_watts": watts(look.value(found[Field.POWER_INSTANT_MW])),
        "power_limit_watts": watts(look.value(device.power_limit_mw())),
        "temperature_celsius": look.value(device.temperature_celsius()),
        "temperature_margin_celsius": look.value(device.temperature_margin_celsius()),
        "memory_megahertz": look.value(device.clock_mhz("memory")),
        "performance_state": look.value(device.performance_state()),
        "retired_pages": _sum(
            look.value(found[Field.RETIRED_CORRECTED_PAGES]), look.value(found[Field.RETIRED_UNCORRECTED_PAGES])
        ),
        "recovery_action": _action(look.value(found[Field.RECOVERY_ACTION_CODE])),
    }
    return values | _remapped(device, look)


def watts(milliwatts: int | None) -> float | None:
    """Milliwatts in watts."""
    return None if milliwatts is None else milliwatts / 1000


def _by_their_own_calls(device: NvmlDevice, found: Mapping[Field, Reading[int]]) -> dict[Field, Reading[int]]:
    """The values that a driver may refuse by number and still have."""
    others: dict[Field, Reading[int]] = {}
    for field in (
        Field.ECC_CORRECTED_VOLATILE_ERRORS,
        Field.ECC_UNCORRECTED_VOLATILE_ERRORS,
        Field.ECC_CORRECTED_AGGREGATE_ERRORS,
        Field.ECC_UNCORRECTED_AGGREGATE_ERRORS,
    ):
        if found[field].value is None:
            is_corrected, is_aggregate = "_CORRECTED_" in field.name, "_AGGREGATE_" in field.name
            others[field] = device.ecc_errors(corrected=is_corrected, aggregate=is_aggregate)
    if found[Field.PCIE_REPLAY_EVENTS].value is None:
        others[Field.PCIE_REPLAY_EVENTS] = device.pcie_replay_events()
    return others


def _remapped(device: NvmlDevice, look: Look) -> dict[str, Any]:
    rows = look.value(device.remapped_rows())
    if rows is None:
        return dict.fromkeys(REMAPPED)
    return {
        "remapped_corrected_rows": rows.corrected_rows,
        "remapped_uncorrected_rows": rows.uncorrected_rows,
        "remap_is_pending": rows.pending,
        "remap_has_failed": rows.failed,
    }


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _action(code: int | None) -> str | None:
    """The action by name; one that is newer than this list keeps its number."""
    if code is None:
        return None
    return RECOVERY_ACTIONS[code] if code < len(RECOVERY_ACTIONS) else str(code)
