"""Put devices, holders and faults into the catalogue's series, for the node's metrics page.

Units become base units here. What is not known is no series. All series of one call differ, whatever the input: a
device that is told twice counts as told first, and shares of one owner are added.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from collectors.faults.xid import PAGING_XIDS
from fleet.catalogue_device import DEVICE_METRICS
from fleet.errors import one_line
from fleet.measurement import Measurement
from fleet.telemetry import TEXT_LIMIT, WHOLE_DEVICE_MILLIONTHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from collectors.samples import DeviceSample, Held

_METRICS: Final = {metric.name.removeprefix("gputally_device_"): metric for metric in DEVICE_METRICS}

# Series of a device alone: the field, and what it is divided by to be in the base unit.
_PLAIN: Final[Mapping[str, tuple[str, float]]] = {
    "sample_interval_seconds": ("interval_seconds", 1),
    "last_sample_timestamp_seconds": ("ts_nanoseconds", 1e9),
    "busy_ratio": ("busy_ratio", 1),
    "sm_ratio": ("sm_ratio", 1),
    "occupancy_ratio": ("occupancy_ratio", 1),
    "tensor_ratio": ("tensor_ratio", 1),
    "dram_ratio": ("dram_ratio", 1),
    "memory_total_bytes": ("memory_total_bytes", 1),
    "memory_used_bytes": ("memory_used_bytes", 1),
    "memory_reserved_bytes": ("memory_reserved_bytes", 1),
    "sm_clock_hertz": ("sm_megahertz", 1e-6),
    "memory_clock_hertz": ("memory_megahertz", 1e-6),
    "temperature_celsius": ("temperature_celsius", 1),
    "memory_temperature_celsius": ("memory_temperature_celsius", 1),
    "temperature_margin_celsius": ("temperature_margin_celsius", 1),
    "retired_pages": ("retired_pages", 1),
    "pcie_replay_events_total": ("pcie_replay_events", 1),
}
# Of a whole board: on a part of it they would be counted again.
_OF_BOARDS: Final[Mapping[str, tuple[str, float]]] = {
    "power_watts": ("power_watts", 1),
    "power_instant_watts": ("power_instant_watts", 1),
    "power_limit_watts": ("power_limit_watts", 1),
    "energy_joules_total": ("energy_millijoules", 1e3),
}
# Series with more labels: their values, the field, and what it is divided by.
_LABELLED: Final[Mapping[str, tuple[tuple[tuple[str, ...], str, float], ...]]] = {
    "throttle_seconds_total": (
        (("power",), "throttle_power_nanoseconds", 1e9),
        (("thermal",), "throttle_thermal_nanoseconds", 1e9),
        (("software_thermal",), "throttle_software_thermal_nanoseconds", 1e9),
        (("hardware_thermal",), "throttle_hardware_thermal_nanoseconds", 1e9),
        (("power_brake",), "throttle_power_brake_nanoseconds", 1e9),
    ),
    "ecc_errors_total": (
        (("corrected", "volatile"), "ecc_corrected_volatile_errors", 1),
        (("uncorrected", "volatile"), "ecc_uncorrected_volatile_errors", 1),
        (("corrected", "aggregate"), "ecc_corrected_aggregate_errors", 1),
        (("uncorrected", "aggregate"), "ecc_uncorrected_aggregate_errors", 1),
    ),
    "remapped_rows": (
        (("corrected",), "remapped_corrected_rows", 1),
        (("uncorrected",), "remapped_uncorrected_rows", 1),
    ),
    "pcie_bytes_total": ((("tx",), "pcie_tx_bytes", 1), (("rx",), "pcie_rx_bytes", 1)),
    "nvlink_bytes_total": ((("tx",), "nvlink_tx_bytes", 1), (("rx",), "nvlink_rx_bytes", 1)),
}
THROTTLE_REASONS: Final = (
    "idle", "application_clocks", "software_power_cap", "hardware_slowdown", "sync_boost", "software_thermal",
    "hardware_thermal", "hardware_power_brake", "display_clocks", "board_limit", "reliability",
)  # fmt: skip
"""The driver's clock event bits by name, from bit 0 (nvml.h: nvmlClocksEventReason, before that nvmlClocksThrottle)."""


def measured_devices(
    node: str,
    samples: Sequence[DeviceSample],
    *,
    epochs: Mapping[str, int] | None = None,
    estimated_millijoules: Mapping[str, int] | None = None,
) -> Iterator[Measurement]:
    """The series of devices as they stand, counters as totals.

    `epochs` and `estimated_millijoules` are what the windows know by device: resets, and the energy of boards that have
    no meter. A device without a name is left out.
    """
    node = _label(node)
    told: set[str] = set()
    for sample in samples:
        if sample.device is None:
            continue
        uuid = _label(sample.device)
        if uuid in told:
            continue
        told.add(uuid)
        place = (node, uuid)
        yield from _identity(place, sample)
        yield from _readings(place, sample)
        epoch = (epochs or {}).get(sample.device, sample.driver_epoch)
        yield from _maybe("reset_events_total", place, epoch)
        if sample.energy_millijoules is None and sample.parent_uuid is None:
            yield from _maybe("energy_joules_total", place, (estimated_millijoules or {}).get(sample.device), 1e3)


def measured_holders(node: str, held: Iterable[Held]) -> Iterator[Measurement]:
    """Who holds what share of a device now. A job or a user stands in the place of the workload."""
    shares: dict[tuple[str, ...], int] = {}
    for known in held:
        labels = (
            _label(node),
            _label(known.device),
            known.owner_kind,
            _label(known.namespace),
            _label(known.workload or known.job_id or known.user_name),
            _label(known.pod or known.pod_uid),
            _label(known.source),
        )
        shares[labels] = shares.get(labels, 0) + known.gpu_millionths
    for owner, millionths in shares.items():
        yield Measurement(_METRICS["held_ratio"], owner, millionths / WHOLE_DEVICE_MILLIONTHS)


def measured_faults(
    node: str,
    counts: Mapping[tuple[str, str, int, str], int],
    devices: Iterable[DeviceSample],
    *,
    paging_xids: Iterable[int] = PAGING_XIDS,
) -> Iterator[Measurement]:
    """Faults so far, counted by (device, code space, code, severity), as `collectors.faults.faults` counts them.

    Boards start at 0 for each Xid that pages: a series that begins at 1 has no increase for an alert to see.
    """
    node = _label(node)
    paging = tuple(paging_xids)
    totals: dict[tuple[str, ...], int] = {}
    for sample in devices:
        if sample.parent_uuid is None and sample.uuid:
            for code in paging:
                totals[node, _label(sample.uuid), "xid", str(code), "critical"] = 0
    for (uuid, code_space, code, severity), count in counts.items():
        labels = (node, _label(uuid), _label(code_space), str(code), _label(severity))
        totals[labels] = totals.get(labels, 0) + count
    for fault, total in totals.items():
        yield Measurement(_METRICS["fault_events_total"], fault, total)


def _identity(place: tuple[str, str], sample: DeviceSample) -> Iterator[Measurement]:
    about = (
        sample.parent_uuid, sample.slot, sample.vendor, sample.kind, sample.model, sample.architecture, sample.driver,
        sample.pci_bus_id, sample.serial,
    )  # fmt: skip
    yield Measurement(_METRICS["info"], (*place, *map(_label, about)), 1)
    yield Measurement(_METRICS["state_info"], (*place, sample.state), 1)
    for flag in dict.fromkeys(sample.quality):
        yield Measurement(_METRICS["quality_info"], (*place, flag), 1)
    if sample.performance_state is not None:
        yield Measurement(_METRICS["performance_state_info"], (*place, f"P{sample.performance_state}"), 1)
    if sample.recovery_action is not None:
        yield Measurement(_METRICS["recovery_action_info"], (*place, _label(sample.recovery_action)), 1)
    for name, holds in (("pending", sample.remap_is_pending), ("failed", sample.remap_has_failed)):
        if holds:
            yield Measurement(_METRICS["row_remap_info"], (*place, name), 1)
    for reason in throttle_reasons(sample.throttle_bits or 0):
        yield Measurement(_METRICS["throttle_info"], (*place, reason), 1)


def _readings(place: tuple[str, str], sample: DeviceSample) -> Iterator[Measurement]:
    for name, (field, divisor) in _PLAIN.items():
        yield from _maybe(name, place, getattr(sample, field), divisor)
    if sample.parent_uuid is None:
        for name, (field, divisor) in _OF_BOARDS.items():
            yield from _maybe(name, place, getattr(sample, field), divisor)
    for name, series in _LABELLED.items():
        for labels, field, divisor in series:
            yield from _maybe(name, (*place, *labels), getattr(sample, field), divisor)


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """The names of the bits that are set; one without a name is `bit_<number>`."""
    if bits < 0:
        return ()
    numbers = [number for number in range(bits.bit_length()) if bits >> number & 1]
    return tuple(THROTTLE_REASONS[n] if n < len(THROTTLE_REASONS) else f"bit_{n}" for n in numbers)


def _maybe(name: str, labels: tuple[str, ...], value: float | None, divisor: float = 1) -> Iterator[Measurement]:
    if value is not None and math.isfinite(value):
        yield Measurement(_METRICS[name], labels, value / divisor)


def _label(text: str | None) -> str:
    """A text as a label's value: of one line, without characters that act, and bounded."""
    return one_line(text[:TEXT_LIMIT])[:TEXT_LIMIT] if text else ""
