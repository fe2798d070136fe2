"""What arrives is read within bounds and held to the rules; whatever the bytes are, the answer is a reason."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.telemetry import LIST_TEXT_LIMIT, TABLES, TEXT_LIMIT, columns
from store.telemetry_arrow import BatchLimits, RefusedError, decode
from store.telemetry_checks import SHARES_OF_ENGINE_WINDOW, SHARES_OF_WINDOW, check_batch, check_batches, check_rows
from store.telemetry_layout import layouts
from tests.store.telemetry_rows import NOW, any_window, arrow, engine_histogram, engine_window, event, holding, window

LIMITS = BatchLimits()
DAY = 86_400


def stream(table: Any, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=2)
    return bytes(sink.getvalue().to_pybytes())


def refused(name: str, rows: list[dict[str, Any]], now: int = NOW) -> str:
    with pytest.raises(RefusedError) as caught:
        check_rows(layouts()[name], arrow(name, rows), now)
    return f"{caught.value.reason}: {caught.value}"


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_rows_is_fine(name: str) -> None:
    check_rows(layouts()[name], decode(name, 0, stream(arrow(name, [])), LIMITS), NOW)


@given(st.lists(any_window(), max_size=5))
def test_what_was_written_is_read(windows: list[dict[str, Any]]) -> None:
    table = arrow("device_window", windows)
    read = decode("device_window", len(windows), stream(table), LIMITS)
    assert read.to_pylist() == table.to_pylist()
    check_rows(layouts()["device_window"], read, NOW)


def test_an_older_agent_leaves_out_what_it_does_not_know() -> None:
    table = arrow("device_window", [window("GPU-1")]).drop_columns(["nvlink_rx_bytes", "busy_ms"])
    read = decode("device_window", 1, stream(table), LIMITS)
    assert read.column_names == [column.name for column in columns("device_window")]
    assert (read.column("busy_ms").to_pylist(), read.column("nvlink_rx_bytes").to_pylist()) == ([None], [None])


def test_an_agent_of_before_the_phases_of_engines_is_heard() -> None:
    """Its windows of model servers lack these columns; what they would say is not known."""
    later = [
        "received_requests",
        "speculation_draft_events",
        "prefill_busy_ms",
        "decode_busy_ms",
        "estimated_gigaflops",
    ]
    table = arrow("engine_window", [engine_window("llm-a", generation_tokens=5)]).drop_columns(later)
    read = decode("engine_window", 1, stream(table), LIMITS)
    check_rows(layouts()["engine_window"], read, NOW)
    (row,) = read.to_pylist()
    assert row["generation_tokens"] == 5
    assert {row[name] for name in later} == {None}


def test_columns_may_come_in_any_order() -> None:
    table = arrow("held_window", [holding("GPU-1", pod="p")])
    read = decode("held_window", 1, stream(table.select(table.column_names[::-1])), LIMITS)
    assert read.to_pylist() == table.to_pylist()


def test_a_required_column_that_is_missing_is_named() -> None:
    with pytest.raises(RefusedError, match="device_window: column state is missing"):
        decode("device_window", 1, stream(arrow("device_window", [window("GPU-1")]).drop_columns(["state"])), LIMITS)


def test_a_column_that_stands_twice_is_refused() -> None:
    table = arrow("device_window", [window("GPU-1")])
    with pytest.raises(RefusedError, match="a column stands twice"):
        decode("device_window", 1, stream(table.append_column("state", table.column("state"))), LIMITS)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_small_body_that_would_unpack_to_a_large_one_is_refused_unread(codec: str) -> None:
    one = arrow("device_event", [event("e", text="x" * 1_000_000)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, one.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(pa.concat_tables([one] * 50).combine_chunks())
    packed = bytes(sink.getvalue().to_pybytes())
    assert len(packed) < 1_000_000
    del sink, one
    before = pa.total_allocated_bytes()
    with pytest.raises(RefusedError, match="the stream is compressed"):
        decode("device_event", 50, packed, LIMITS)
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_dictionaries_are_refused() -> None:
    table = arrow("device_window", [window("GPU-1")])
    place = table.column_names.index("state")
    packed = table.set_column(place, "state", table.column("state").dictionary_encode())
    with pytest.raises(RefusedError, match="column state is dictionary"):
        decode("device_window", 1, stream(packed), LIMITS)


def test_more_rows_than_a_batch_may_have_are_refused_unread() -> None:
    with pytest.raises(RefusedError, match="100001 rows, more than 100000"):
        decode("device_window", 100_001, b"", LIMITS)


def test_text_that_is_no_utf_8_is_refused() -> None:
    content = stream(arrow("device_event", [event("an-event-of-12")]))
    with pytest.raises(RefusedError) as caught:
        decode("device_event", 1, content.replace(b"an-event-of-12", b"an-event-of-\xff\xfe"), LIMITS)
    assert caught.value.reason == "encoding"


@settings(max_examples=300)
@given(st.data())
def test_damaged_streams_are_refused_or_read_but_never_raise(data: st.DataObject) -> None:
    """Bytes changed anywhere, cut off, repeated: the schema's flatbuffer, offsets, lengths and bitmaps among them."""
    content = bytearray(stream(arrow("device_event", [event(f"e{n}", text="t" * n, device="GPU") for n in range(3)])))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 8))
        if data.draw(st.booleans()):
            content[place] = data.draw(st.integers(0, 255))
        else:
            content[place : place + 8] = struct.pack("<q", data.draw(st.integers(-(2**63), 2**63 - 1)))
    damaged = bytes(content[: data.draw(st.integers(0, len(content)))]) if data.draw(st.booleans()) else bytes(content)
    try:
        read = decode("device_event", 3, damaged, LIMITS)
        check_rows(layouts()["device_event"], read, NOW)
    except RefusedError as error:
        answer = (error.reason, str(error))
    else:
        answer = ("read", str(read.num_rows))
    assert answer[0] in {"encoding", "schema", "size", "time", "value", "text", "read"}
    assert "\n" not in answer[1]
    assert answer[0] != "read" or answer[1] == "3"


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"ARROW1\0\0", b"<html>" * 50, b"\xff\xff\xff\xff" * 20])
def test_what_is_no_stream_is_refused(content: bytes) -> None:
    with pytest.raises(RefusedError) as caught:
        decode("device_window", 1, content, LIMITS)
    assert caught.value.reason == "encoding"


WRONG_WINDOWS = [
    ({"busy_ms": -1}, "value: device_window row 1, column busy_ms: -1 is below 0"),
    ({"retired_pages": 2**31}, f"value: device_window row 1, column retired_pages: {2**31} is above {2**31 - 1}"),
    ({"energy_millijoules": -1}, "value: device_window row 1, column energy_millijoules: -1 is below 0"),
    ({"temperature_max_celsius": 2**31}, "value: device_window row 1, column temperature_max_celsius: "),
    (
        {"window_start_second": NOW + 1},
        "value: device_window row 1, column window_start_second: is not a multiple of 60",
    ),
    ({"window_ms": -1}, "value: device_window row 1, column window_ms: "),
    ({"window_ms": 60_001}, "value: device_window row 1, column window_ms: is not from 0 to 60000"),
    (
        {"window_start_second": NOW + 3660},
        "time: device_window row 1, column window_start_second: more than an hour ahead",
    ),
    (
        {"window_start_second": NOW - 46 * DAY},
        "time: device_window row 1, column window_start_second: more than 45 days",
    ),
    ({"window_start_second": -(2**63)}, "value: device_window row 1, column window_start_second: "),
    ({"window_start_second": 2**63 - 60}, "time: device_window row 1, column window_start_second: "),
    ({"device": "x" * (TEXT_LIMIT + 1)}, "text: device_window row 1, column device: is longer than 256 characters"),
    ({"device": None}, "value: device_window row 1, column device: has no value"),
    ({"observed_ms": None}, "value: device_window row 1, column observed_ms: has no value"),
    *[
        ({name: 60_001}, f"value: device_window row 1, column {name}: is longer than the window")
        for name in SHARES_OF_WINDOW
    ],
]


@pytest.mark.parametrize(("values", "message"), WRONG_WINDOWS, ids=[str(values)[:50] for values, _ in WRONG_WINDOWS])
def test_a_window_that_cannot_be_is_named(values: dict[str, Any], message: str) -> None:
    assert refused("device_window", [window("GPU-1"), window("GPU-2") | values]).startswith(message)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gpu_millionths": 1_000_001}, "value: held_window row 0, column gpu_millionths: 1000001 is above 1000000"),
        ({"gpu_millionths": -1}, "value: held_window row 0, column gpu_millionths: -1 is below 0"),
        ({"to_second": NOW}, "value: held_window row 0, column to_second: is not after from_second"),
        ({"from_second": NOW + 59, "to_second": NOW + 61}, "value: held_window row 0, column to_second: is in another"),
        ({"to_second": NOW + 3601}, "time: held_window row 0, column to_second: more than an hour ahead"),
    ],
)
def test_a_holding_that_cannot_be_is_named(values: dict[str, Any], message: str) -> None:
    assert refused("held_window", [holding("GPU-1", **values)]).startswith(message)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"window_start_second": NOW + 1}, "window_start_second: is not a multiple of 60"),
        ({"window_ms": 60_001}, "window_ms: is not from 0 to 60000"),
        ({"window_start_second": NOW - 46 * DAY}, "window_start_second: more than 45 days"),
        ({"generation_tokens": -1}, "generation_tokens: -1 is below 0"),
        ({"model": "x" * (TEXT_LIMIT + 1)}, "model: is longer than 256 characters"),
        *[({name: 60_001}, f"{name}: is longer than the window") for name in SHARES_OF_ENGINE_WINDOW],
    ],
)
def test_a_window_of_a_model_server_that_cannot_be_is_named(values: dict[str, Any], told: str) -> None:
    assert f"engine_window row 0, column {told}" in refused("engine_window", [engine_window("a", **values)])


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"window_start_second": NOW + 1}, "window_start_second: is not a multiple of 60"),
        ({"bounds": "1" * (LIST_TEXT_LIMIT + 1)}, "bounds: is longer than 4096 characters"),
        ({"signal": "x" * (TEXT_LIMIT + 1)}, "signal: is longer than 256 characters"),
        ({"count": -1}, "count: -1 is below 0"),
    ],
)
def test_observations_that_cannot_be_are_named(values: dict[str, Any], told: str) -> None:
    assert f"engine_histogram row 0, column {told}" in refused("engine_histogram", [engine_histogram("a", **values)])


def test_a_model_server_of_several_ranks_is_busy_for_longer_than_its_window() -> None:
    rows = [engine_window("a", busy_ms=240_000, generation_tokens=2**62)]
    check_rows(layouts()["engine_window"], arrow("engine_window", rows), NOW)
    long = engine_histogram("a", bounds="1" * LIST_TEXT_LIMIT)
    check_rows(layouts()["engine_histogram"], arrow("engine_histogram", [long]), NOW)


def test_events_may_be_older_than_windows() -> None:
    old = (NOW - 100 * DAY) * 1_000_000
    check_rows(layouts()["device_event"], arrow("device_event", [event("e", old, code=-1)]), NOW)
    assert refused("device_event", [event("e", (NOW - 401 * DAY) * 1_000_000)]).startswith("time: device_event row 0")


def test_edges_are_inside() -> None:
    edges = [window("GPU", NOW + 3600), window("GPU", NOW - 45 * DAY), window("x" * TEXT_LIMIT, busy_ms=60_000)]
    edges.append(window("GPU", temperature_max_celsius=-40, window_ms=0, observed_ms=0))
    check_rows(layouts()["device_window"], arrow("device_window", edges), NOW)
    check_rows(layouts()["held_window"], arrow("held_window", [holding("GPU", NOW + 59, NOW + 60)]), NOW)


@given(st.lists(st.sampled_from([0, 5, -1, 60_001]), min_size=1, max_size=8))
def test_judging_all_together_finds_fault_when_judging_one_by_one_does(busy: list[int]) -> None:
    batches = [{"device_window": arrow("device_window", [window("GPU", busy_ms=value)])} for value in busy]

    def fails(judge: Any, given: Any) -> bool:
        try:
            judge(given, NOW)
        except RefusedError:
            return True
        return False

    assert fails(check_batches, batches) == any(fails(check_batch, batch) for batch in batches)
