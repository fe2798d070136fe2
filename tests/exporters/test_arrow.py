"""Rows become Arrow streams that pyarrow, as the hub uses it, reads back value for value."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.arrow import encode
from fleet.telemetry import TABLES, TEXT_LIMIT, DeviceEventRow, DeviceWindowRow, columns

if TYPE_CHECKING:
    from fleet.telemetry import Row

ARROW = {int: pa.int64(), str: pa.string(), bool: pa.bool_()}
VALUES: dict[type, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63 - 1),
    str: st.text(max_size=TEXT_LIMIT),
    bool: st.booleans(),
}


def rows_of(table: str) -> st.SearchStrategy[list[Row]]:
    values = {
        column.name: st.none() | VALUES[column.kind] if column.is_nullable else VALUES[column.kind]
        for column in columns(table)
    }
    return st.lists(st.builds(TABLES[table], **values), max_size=5)


def read(stream: bytes) -> pa.Table:
    table = pa.ipc.open_stream(stream).read_all()
    table.validate(full=True)
    return table


@pytest.mark.parametrize("table", TABLES)
@given(data=st.data())
def test_rows_come_back_as_they_were(table: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(table))
    found = read(encode(table, rows))
    assert found.to_pylist() == [{field.name: getattr(row, field.name) for field in fields(row)} for row in rows]
    wanted = [pa.field(c.name, ARROW[c.kind], nullable=c.is_nullable) for c in columns(table)]
    assert found.schema == pa.schema(wanted)


def window(**changes: Any) -> DeviceWindowRow:
    whole: dict[str, Any] = {"device": "GPU-1", "window_start_second": 60, "window_ms": 60_000, "observed_ms": 60_000}
    return DeviceWindowRow(**whole | {"state": "ok"} | changes)


def test_long_texts_are_cut_to_what_the_hub_takes() -> None:
    (row,) = read(encode("device_window", [window(device="ü" * 300)])).to_pylist()
    assert row["device"] == "ü" * TEXT_LIMIT


def test_bytes_that_are_no_text_do_not_cost_the_batch() -> None:
    """What Python makes of a path or a process name that is not UTF-8."""
    event = DeviceEventRow(
        event_id="e", event_microsecond=1, source="s", code_space="xid", code=79, severity="warn", text="a\udcff\0b"
    )
    (row,) = read(encode("device_event", [event])).to_pylist()
    assert row["text"] == "a?\0b"


@pytest.mark.parametrize("wrong", [{"busy_ms": 2**63}, {"busy_ms": 0.5}, {"busy_ms": "7"}, {"busy_ms": -(2**63) - 1}])
def test_a_value_that_does_not_fit_names_its_column(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="busy_ms"):
        encode("device_window", [window(), window(**wrong)])


@pytest.mark.parametrize("column", ["device", "window_ms"])
def test_unknown_where_a_value_is_needed_is_refused_and_never_0(column: str) -> None:
    with pytest.raises(ValueError, match=column):
        encode("device_window", [window(**{column: None})])


def test_a_row_of_another_table_is_refused() -> None:
    with pytest.raises(TypeError, match="held_window"):
        encode("held_window", [window()])
    with pytest.raises(KeyError):
        encode("charge", [])
