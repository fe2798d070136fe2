"""The fields of DCGM that gputally knows: their names in three generations, and what their values may be.

DCGM 4.6.0 renamed most fields and its exporter prints whatever name its configuration uses, so a fleet holds all
generations at once; the field id is what stays. Whether a field is a counter is said here and by COUNTERS, because
the type a page declares is wrong for several. Absent on purpose: NVLINK_BANDWIDTH_TOTAL and PROF_PCIE_*_BYTES
(rates, although pages called them counters) and DCGM_EXP_CLOCK_EVENTS_COUNT (samples in a window).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 2**20
BLANKS = ("blank", "not_found", "not_supported", "no_permission")
_INT32_BLANK = 0x7FFFFFF0
_DOUBLE_BLANK = 2.0**47
_INT64_BLANK = 9.2233720368547758e18
_ALL_BITS = (2.0**32 - 1, 2.0**64 - 1)
BLANK_TEXTS = ("<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>")
RECOVERY_ACTIONS = (
    "none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset", "imex_domain_reset", "bus_reset",
    "system_reboot",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `to` is where its value goes: a field of DeviceSample, or a name that ends in `_part`.

    `scope` is `board` for what an exporter copies onto every MIG instance of a board, `part` for what each instance
    has of its own. A `wide` field may truly reach the small sentinels, so only 64-bit ones are blanks in it.
    """

    field_id: int
    to: str
    scope: Literal["board", "part"]
    low: float
    high: float
    names: tuple[str, ...]
    is_wide: bool = False
    convert: Callable[[float], float] = int


_HUGE = 2.0**63


def _percent(value: float) -> float:
    return value / 100


def _mebibytes(value: float) -> float:
    return int(value * MIB)


def _ratio(field_id: int, to: str, *names: str) -> Field:
    return Field(field_id, to, "part", 0, 1, names, convert=float)


def _memory(field_id: int, to: str, *names: str) -> Field:
    return Field(field_id, to, "part", 0, 2**24, names, convert=_mebibytes)


def _watts(field_id: int, to: str, *names: str) -> Field:
    return Field(field_id, to, "board", 0, 20_000, names, convert=float)


def _celsius(field_id: int, to: str, *names: str) -> Field:
    return Field(field_id, to, "board", -40, 150, names)


def _megahertz(field_id: int, to: str, *names: str) -> Field:
    return Field(field_id, to, "board", 0, 20_000, names)


def _count(field_id: int, to: str, *names: str) -> Field:
    return Field(field_id, to, "board", 0, 2**31 - 1, names)


def _total(field_id: int, to: str, *names: str) -> Field:
    return Field(field_id, to, "board", 0, _HUGE, names, is_wide=True)


# Names without DCGM_FI_DEV_ or DCGM_FI_PROF_; in lower case and whole those of the exporter before 2.0.
FIELDS: tuple[Field, ...] = (
    _megahertz(100, "sm_megahertz", "SM_CLOCK", "dcgm_sm_clock"),
    _megahertz(101, "memory_megahertz", "MEM_CLOCK", "dcgm_memory_clock"),
    Field(112, "throttle_bits", "board", 0, 2**31 - 1, ("CLOCK_THROTTLE_REASONS", "CLOCKS_EVENT_REASONS")),
    _celsius(140, "memory_temperature_celsius", "MEMORY_TEMP", "MEMORY_TEMP_CELSIUS", "dcgm_memory_temp"),
    _celsius(150, "temperature_celsius", "GPU_TEMP", "GPU_TEMP_CELSIUS", "dcgm_gpu_temp"),
    _celsius(153, "temperature_margin_celsius", "GPU_TEMP_LIMIT", "GPU_TEMP_MARGIN_CELSIUS"),
    _watts(155, "power_watts", "POWER_USAGE", "BOARD_POWER_WATTS", "dcgm_power_usage"),
    _total(156, "energy_millijoules", "TOTAL_ENERGY_CONSUMPTION", "dcgm_total_energy_consumption"),
    _watts(157, "power_instant_watts", "POWER_USAGE_INSTANT", "BOARD_POWER_RAW_WATTS"),
    _watts(164, "power_limit_watts", "ENFORCED_POWER_LIMIT", "BOARD_POWER_LIMIT_ENFORCED_WATTS"),
    Field(190, "performance_state", "board", 0, 15, ("PSTATE",)),
    _count(202, "pcie_replay_events", "PCIE_REPLAY_COUNTER", "PCIE_REPLAY_TOTAL", "dcgm_pcie_replay_counter"),
    # Its new name says ratio; its values are still per cent.
    Field(203, "busy_ratio", "part", 0, 100, ("GPU_UTIL", "GPU_UTIL_RATIO", "dcgm_gpu_utilization"),
          convert=_percent),
    Field(230, "xid_part", "board", 0, 2**16, ("XID_ERRORS", "XID_ERROR", "dcgm_xid_errors")),
    _total(240, "throttle_power_nanoseconds", "POWER_VIOLATION", "dcgm_power_violation"),
    _total(241, "throttle_thermal_nanoseconds", "THERMAL_VIOLATION", "dcgm_thermal_violation"),
    _memory(250, "memory_total_bytes", "FB_TOTAL", "dcgm_fb_total"),
    _memory(251, "memory_free_part", "FB_FREE", "dcgm_fb_free"),
    _memory(252, "memory_used_bytes", "FB_USED", "dcgm_fb_used"),
    _memory(253, "memory_reserved_bytes", "FB_RESERVED"),
    _count(310, "ecc_corrected_volatile_errors", "ECC_SBE_VOL_TOTAL", "dcgm_ecc_sbe_volatile_total"),
    _count(311, "ecc_uncorrected_volatile_errors", "ECC_DBE_VOL_TOTAL", "dcgm_ecc_dbe_volatile_total"),
    _count(312, "ecc_corrected_aggregate_errors", "ECC_SBE_AGG_TOTAL", "dcgm_ecc_sbe_aggregate_total"),
    _count(313, "ecc_uncorrected_aggregate_errors", "ECC_DBE_AGG_TOTAL", "dcgm_ecc_dbe_aggregate_total"),
    _count(390, "retired_corrected_part", "RETIRED_SBE", "PAGE_RETIRED_SBE", "dcgm_retired_pages_sbe"),
    _count(391, "retired_uncorrected_part", "RETIRED_DBE", "PAGE_RETIRED_DBE", "dcgm_retired_pages_dbe"),
    _count(393, "remapped_uncorrected_rows", "UNCORRECTABLE_REMAPPED_ROWS", "ROW_REMAP_UNCORRECTABLE_TOTAL"),
    _count(394, "remapped_corrected_rows", "CORRECTABLE_REMAPPED_ROWS", "ROW_REMAP_CORRECTABLE_TOTAL"),
    Field(395, "remap_has_failed", "board", 0, 1, ("ROW_REMAP_FAILURE", "ROW_REMAP_FAILED"), convert=bool),
    Field(396, "remap_is_pending", "board", 0, 1, ("ROW_REMAP_PENDING",), convert=bool),
    _ratio(1001, "engine_ratio_part", "GR_ENGINE_ACTIVE", "GR_ENGINE_UTIL_RATIO"),
    _ratio(1002, "sm_ratio", "SM_ACTIVE", "SM_UTIL_RATIO"),
    _ratio(1003, "occupancy_ratio", "SM_OCCUPANCY", "SM_OCCUPANCY_RATIO"),
    _ratio(1004, "tensor_ratio", "PIPE_TENSOR_ACTIVE", "TENSOR_UTIL_RATIO"),
    _ratio(1005, "dram_ratio", "DRAM_ACTIVE", "DRAM_UTIL_RATIO"),
    _total(1091, "pcie_tx_bytes", "PCIE_TX_BYTES_TOTAL"),
    _total(1092, "pcie_rx_bytes", "PCIE_RX_BYTES_TOTAL"),
    _total(1201, "nvlink_tx_bytes", "NVLINK_COUNT_TX_BYTES"),
    _total(1203, "nvlink_rx_bytes", "NVLINK_COUNT_RX_BYTES"),
    Field(1523, "recovery_action_part", "board", 0, len(RECOVERY_ACTIONS) - 1,
          ("GET_GPU_RECOVERY_ACTION", "GPU_RECOVERY_ACTION")),
)  # fmt: skip

# The exporter's own count of Xids in a window: one series per code, which is only present or not.
XID_IN_WINDOW = Field(0, "xid_window_part", "board", 0, _HUGE, ("DCGM_EXP_XID_ERRORS_COUNT",), is_wide=True)

_BY_NAME = {name: field for field in FIELDS for name in field.names} | {XID_IN_WINDOW.names[0]: XID_IN_WINDOW}
_PREFIXES = ("DCGM_FI_DEV_", "DCGM_FI_PROF_", "dcgm_fi_dev_", "dcgm_fi_prof_")


def is_dcgm(name: str) -> bool:
    """Whether a metric comes from DCGM, known here or not."""
    return name.startswith(("DCGM_", "dcgm_"))


def field_named(name: str) -> Field | None:
    """The field of a metric name of any generation; None if gputally has no use for it."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return _BY_NAME.get(name.removeprefix(prefix).upper())
    return _BY_NAME.get(name) if is_dcgm(name) else None


def blank_reason(field: Field, value: float) -> str | None:
    """Why DCGM or the driver has no value here, if that is what the number means."""
    if value >= _INT64_BLANK:
        # As floats the four 64-bit blanks are one number: only that there is none can be told.
        return "blank"
    if field.is_wide:
        return None
    for first in (_INT32_BLANK, _DOUBLE_BLANK):
        if first <= value < first + len(BLANKS):
            return BLANKS[int(value - first)]
    return "blank" if value in _ALL_BITS else None
