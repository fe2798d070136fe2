"""How each wire table of `fleet.telemetry` lies in the lake: which columns are kept, which become keys.

A device's name and the time become small numbers, `day`, `dh` and `second`, that sort and group fast; all other columns
keep their name. Which node a row is from stands on its batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fleet.telemetry import TABLES, Column, columns
from store.sqltext import identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS_PER_DAY: Final = 86_400
INTEGER_MAX: Final = 2**31 - 1
BIGINT_MAX: Final = 2**63 - 1

BIGINT_COLUMNS: Final = frozenset(
    {
        "seen_from_second", "memory_used_mebibyte_ms", "power_microjoules", "energy_millijoules", "throttle_bits",
        "throttle_power_nanoseconds", "throttle_thermal_nanoseconds", "ecc_corrected_errors",
        "ecc_uncorrected_errors", "pcie_tx_bytes", "pcie_rx_bytes", "pcie_replay_events", "nvlink_tx_bytes",
        "nvlink_rx_bytes", "event_microsecond", "code", "running_request_ms", "running_max_requests",
        "waiting_request_ms", "waiting_max_requests", "kv_capacity_tokens", "prompt_tokens", "prompt_cached_tokens",
        "prompt_computed_tokens", "generation_tokens", "finished_prompt_tokens", "finished_generation_tokens",
        "prefix_query_tokens", "prefix_hit_tokens", "finished_requests", "failed_requests", "aborted_requests",
        "preemption_events", "speculation_draft_tokens", "speculation_accepted_tokens", "model_load_ms",
        "sum_microunits", "count", "received_requests", "speculation_draft_events", "estimated_gigaflops",
    }
)  # fmt: skip
"""Whole numbers that a window may take beyond 31 bits; all others are stored as INTEGER, which aggregates faster."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """One column in the lake: its type, and its value from a wire row `r`, its batch `b` and device number `n`."""

    name: str
    sql_type: str
    value: str


@dataclass(frozen=True, slots=True)
class Layout:
    """One table's columns in the lake, in their order."""

    table: str
    columns: tuple[StoredColumn, ...]
    time_columns: Mapping[str, int]
    """Wire columns that are times, with how many of their unit make a day."""
    is_numbered: bool
    """Rows name their device by number."""


@cache
def wire_columns(table: str) -> tuple[Column, ...]:
    """The columns of a table on the wire; KeyError for a table that is none. Worked out once: it is asked per batch."""
    return columns(table)


def _keys(second: str) -> tuple[StoredColumn, ...]:
    of_day = f"r.{second} % {SECONDS_PER_DAY}"
    return (
        StoredColumn("day", "INTEGER", f"(r.{second} // {SECONDS_PER_DAY})::INTEGER"),
        StoredColumn("dh", "INTEGER", f"(n.device_no * 24 + ({of_day}) // 3600)::INTEGER"),
        StoredColumn("second", "INTEGER", f"({of_day})::INTEGER"),
    )


_DAY_OF_WINDOW: Final = StoredColumn("day", "INTEGER", f"(r.window_start_second // {SECONDS_PER_DAY})::INTEGER")
_SECOND_OF_WINDOW: Final = StoredColumn("second", "INTEGER", f"(r.window_start_second % {SECONDS_PER_DAY})::INTEGER")


def _kept(table: str, *replaced: str) -> tuple[StoredColumn, ...]:
    return tuple(
        StoredColumn(column.name, sql_type(column), f"r.{identifier(column.name)}::{sql_type(column)}")
        for column in wire_columns(table)
        if column.name not in replaced
    )


def sql_type(column: Column) -> str:
    """The type in which the lake keeps a wire column."""
    if column.kind is str:
        return "VARCHAR"
    if column.kind is bool:
        return "BOOLEAN"
    return "BIGINT" if column.name in BIGINT_COLUMNS else "INTEGER"


@cache
def layouts() -> Mapping[str, Layout]:
    """The layout of every table that agents send, by name."""
    place = (StoredColumn("cluster", "VARCHAR", "b.cluster"), StoredColumn("node", "VARCHAR", "b.node"))
    duration = StoredColumn("seconds", "INTEGER", "(r.to_second - r.from_second)::INTEGER")
    event_day = StoredColumn("day", "INTEGER", f"(r.event_microsecond // {SECONDS_PER_DAY * 1_000_000})::INTEGER")
    window = (*_keys("window_start_second"), *_kept("device_window", "device", "window_start_second"))
    held = (*_keys("from_second"), duration, *place, *_kept("held_window", "device", "from_second", "to_second"))
    of_day = (_DAY_OF_WINDOW, _SECOND_OF_WINDOW, *place)
    engine = (*of_day, *_kept("engine_window", "window_start_second"))
    histogram = (*of_day, *_kept("engine_histogram", "window_start_second"))
    day, micro_day = SECONDS_PER_DAY, SECONDS_PER_DAY * 1_000_000
    made = (
        Layout("seen_device", (*place, *_kept("seen_device")), {"seen_from_second": day}, is_numbered=False),
        Layout("device_window", window, {"window_start_second": day}, is_numbered=True),
        Layout("held_window", held, {"from_second": day, "to_second": day}, is_numbered=True),
        Layout("device_event", (event_day, *place, *_kept("device_event")), {"event_microsecond": micro_day},
               is_numbered=False),
        Layout("engine_window", engine, {"window_start_second": day}, is_numbered=False),
        Layout("engine_histogram", histogram, {"window_start_second": day}, is_numbered=False),
    )  # fmt: skip
    assert {layout.table for layout in made} == set(TABLES)
    return MappingProxyType({layout.table: layout for layout in made})
