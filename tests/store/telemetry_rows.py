"""Rows of wire tables for the tests of the store: any that the rules allow."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st

from fleet.telemetry import QUALITY_BITS, STATES, columns
from store.telemetry import StoredBatch
from store.telemetry_arrow import ARROW_TYPES
from store.telemetry_layout import BIGINT_COLUMNS, BIGINT_MAX, INTEGER_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOW = 1_780_000_020
"""28 May 2026, a whole minute."""
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=256)
MILLISECONDS = st.integers(0, 60_000)


def arrow(name: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as an Arrow table of the wire."""
    return pa.Table.from_pylist(list(rows), pa.schema([(c.name, ARROW_TYPES[c.kind]) for c in columns(name)]))


def window(device: str, second: int = NOW, **values: Any) -> dict[str, Any]:
    """A window with nothing known but that it was watched."""
    zeros = {c.name: 0 for c in columns("device_window") if not c.is_nullable}
    return zeros | {
        "device": device, "window_start_second": second, "window_ms": 60_000, "observed_ms": 60_000, "state": "ok",
    } | values  # fmt: skip


def holding(device: str, start: int = NOW, end: int = NOW + 60, **values: Any) -> dict[str, Any]:
    """A whole device held for a window."""
    return {
        "device": device, "from_second": start, "to_second": end, "gpu_millionths": 1_000_000, "owner_kind": "pod",
        "source": "kubelet", "confidence": "exact",
    } | values  # fmt: skip


def event(event_id: str, microsecond: int = NOW * 1_000_000, **values: Any) -> dict[str, Any]:
    """An Xid."""
    return {
        "event_id": event_id, "event_microsecond": microsecond, "source": "nvml", "code_space": "xid", "code": 79,
        "severity": "fatal",
    } | values  # fmt: skip


def batch(node: str, sequence: int, tables: Mapping[str, Sequence[Mapping[str, Any]]], **fields: Any) -> StoredBatch:
    """A batch that was decoded."""
    known = {"cluster": "c", "boot_id": "boot", "spool_id": "spool"} | fields
    received = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    return StoredBatch(
        node=node, sequence=sequence, received_at=received, tables={n: arrow(n, rows) for n, rows in tables.items()},
        **known,
    )  # fmt: skip


def any_window() -> st.SearchStrategy[dict[str, Any]]:
    """Any window that the rules allow."""
    values: dict[str, Any] = {}
    for column in columns("device_window"):
        if column.name.endswith("_ms") and column.name not in BIGINT_COLUMNS:
            kind: st.SearchStrategy[Any] = MILLISECONDS
        elif column.kind is bool:
            kind = st.booleans()
        else:
            largest = BIGINT_MAX if column.name in BIGINT_COLUMNS else INTEGER_MAX
            kind = st.integers(-INTEGER_MAX if column.name.endswith("celsius") else 0, largest)
        values[column.name] = st.none() | kind if column.is_nullable else kind
    return st.fixed_dictionaries(
        values
        | {
            "device": TEXTS,
            "window_start_second": st.integers(0, 1000).map(lambda n: NOW - 60 * n),
            "window_ms": st.just(60_000),
            "state": st.sampled_from(STATES),
            "quality_bits": st.integers(0, sum(QUALITY_BITS.values())),
        }
    )


def engine_window(server: str, second: int = NOW, **values: Any) -> dict[str, Any]:
    """A window of a model server with nothing known but that it was watched."""
    zeros = {c.name: 0 for c in columns("engine_window") if not c.is_nullable}
    return zeros | {
        "server": server, "engine": "vllm", "window_start_second": second, "window_ms": 60_000, "observed_ms": 60_000,
    } | values  # fmt: skip


def engine_histogram(server: str, second: int = NOW, **values: Any) -> dict[str, Any]:
    """Observations of a model server."""
    return {
        "server": server, "engine": "vllm", "window_start_second": second, "signal": "decode_time_seconds",
        "bounds": "0.5,1", "counts": "1,2,0", "sum_microunits": 1_500_000, "count": 3,
    } | values  # fmt: skip
