"""The sense of telemetry values: numbers that fit and can be, times that are not absurd, intervals inside one window.

Only what cannot be true is refused, for a refused batch is lost: doubt is expressed by the agent in `quality_bits`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fleet.telemetry import WHOLE_DEVICE_MILLIONTHS, WINDOW_SECONDS, Column
from store.telemetry_arrow import RefusedError, Table, check_texts, first_where, refuse
from store.telemetry_layout import BIGINT_COLUMNS, BIGINT_MAX, INTEGER_MAX, Layout, layouts, wire_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FUTURE_SECONDS: Final = 3600
OLDEST_DAYS: Final = MappingProxyType(
    {
        "device_window": 45,
        "held_window": 45,
        "device_event": 400,
        "seen_device": 400,
        "engine_window": 45,
        "engine_histogram": 45,
    }
)
"""Windows and holdings are money, and a spool holds no more than this; a kernel's log may tell of older events."""
SIGNED: Final = frozenset(
    {"temperature_max_celsius", "memory_temperature_max_celsius", "temperature_margin_min_celsius", "code"}
)
SHARES_OF_WINDOW: Final = (
    "observed_ms", "busy_observed_ms", "profile_observed_ms", "memory_observed_ms", "power_observed_ms",
    "busy_ms", "sm_ms", "occupancy_ms", "tensor_ms", "dram_ms",
)  # fmt: skip
"""Columns that cannot be longer than the window."""
SHARES_OF_ENGINE_WINDOW: Final = (
    "observed_ms", "running_observed_ms", "waiting_observed_ms", "kv_observed_ms", "kv_used_ms", "asleep_ms",
)  # fmt: skip
"""The same of a model server; busy and idle time may be that of several ranks."""


def check_batch(tables: Mapping[str, Table], now_second: int) -> None:
    """Raise RefusedError, naming table, row and column, unless every row of a batch can be stored and can be true."""
    for name, table in tables.items():
        check_rows(layouts()[name], table, now_second)


def check_batches(batches: Sequence[Mapping[str, Table]], now_second: int) -> None:
    """As `check_batch`, for several batches in one pass; rows are then numbered across all of them."""
    for name, layout in layouts().items():
        parts = [tables[name] for tables in batches if name in tables]
        if parts:
            check_rows(layout, pa.concat_tables(parts).combine_chunks(), now_second)


def check_rows(layout: Layout, table: Table, now_second: int) -> None:
    """Raise RefusedError, naming table, row and column, unless every row can be stored and can be true."""
    name = layout.table
    if not table.num_rows:
        return
    check_texts(name, table)
    for column in wire_columns(name):
        if column.kind is int:
            _check_number(name, column, table.column(column.name))
    for time_column, units_per_day in layout.time_columns.items():
        _check_time(name, time_column, table.column(time_column), now_second, units_per_day // 86_400)
    if name == "device_window":
        _check_windows(name, table, SHARES_OF_WINDOW)
    elif name == "engine_window":
        _check_windows(name, table, SHARES_OF_ENGINE_WINDOW)
    elif name == "engine_histogram":
        _check_start(name, table)
    elif name == "held_window":
        _check_holdings(table)


def _check_number(name: str, column: Column, values: Any) -> None:
    largest = BIGINT_MAX if column.name in BIGINT_COLUMNS else INTEGER_MAX
    if column.name in ("window_start_second", "from_second", "to_second"):
        largest = BIGINT_MAX
    if column.name == "gpu_millionths":
        largest = WHOLE_DEVICE_MILLIONTHS
    smallest = -INTEGER_MAX if column.name in SIGNED else 0
    found = pc.min_max(values).as_py()
    if found["min"] is not None and found["min"] < smallest:
        refuse(name, column, first_where(pc.less(values, smallest)), "value", f"{found['min']} is below {smallest}")
    if found["max"] is not None and found["max"] > largest:
        refuse(name, column, first_where(pc.greater(values, largest)), "value", f"{found['max']} is above {largest}")


def _check_time(name: str, column: str, values: Any, now_second: int, units_per_second: int) -> None:
    oldest = (now_second - OLDEST_DAYS[name] * 86_400) * units_per_second
    newest = (now_second + FUTURE_SECONDS) * units_per_second
    found = pc.min_max(values).as_py()
    if found["min"] < oldest:
        row = first_where(pc.less(values, oldest))
        _refuse_rows(name, column, row, "time", f"more than {OLDEST_DAYS[name]} days ago")
    if found["max"] > newest:
        row = first_where(pc.greater(values, newest))
        _refuse_rows(name, column, row, "time", "more than an hour ahead of the hub's clock")


def _check_windows(name: str, table: Table, shares: Sequence[str]) -> None:
    _check_start(name, table)
    length = table.column("window_ms")
    # A length of 0 is of a row that only brings what a counter added in a window that had been sent before.
    _refuse_where(
        pc.or_(pc.less(length, 0), pc.greater(length, WINDOW_SECONDS * 1000)),
        name, "window_ms", f"is not from 0 to {WINDOW_SECONDS * 1000}",
    )  # fmt: skip
    for share in shares:
        longer = pc.fill_null(pc.greater(table.column(share), length), fill_value=False)
        _refuse_where(longer, name, share, "is longer than the window")


def _check_start(name: str, table: Table) -> None:
    start = table.column("window_start_second")
    message = f"is not a multiple of {WINDOW_SECONDS}"
    _refuse_where(pc.not_equal(_remainder(start), 0), name, "window_start_second", message)


def _check_holdings(table: Table) -> None:
    start, end = table.column("from_second"), table.column("to_second")
    _refuse_where(pc.less_equal(end, start), "held_window", "to_second", "is not after from_second")
    window_end = pc.add(pc.subtract(start, _remainder(start)), WINDOW_SECONDS)
    _refuse_where(pc.greater(end, window_end), "held_window", "to_second", "is in another window than from_second")


def _remainder(seconds: Any) -> Any:
    """Seconds since the last multiple of the window; Arrow has no modulo."""
    return pc.subtract(seconds, pc.multiply(pc.divide(seconds, WINDOW_SECONDS), WINDOW_SECONDS))


def _refuse_where(mask: Any, name: str, column: str, message: str) -> None:
    row = first_where(mask)
    if row is not None:
        _refuse_rows(name, column, row, "value", message)


def _refuse_rows(name: str, column: str, row: int | None, reason: str, message: str) -> None:
    raise RefusedError(reason, f"{name} row {0 if row is None else row}, column {column}: {message}")
