"""Arrow streams of wire tables: read within bounds, held to the table's schema and to the sense of its values.

What arrives is hostile until proven: compressed bodies are refused, for a small one may unpack to any size; offsets and
UTF-8 are validated before anything reads them; every whole number fits the lake's column.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fleet.errors import GputallyError, quoted
from fleet.telemetry import TABLES, Column
from store.telemetry_layout import wire_columns

ARROW_TYPES: Final = {int: pa.int64(), str: pa.string(), bool: pa.bool_()}
Table: TypeAlias = Any
"""A pyarrow.Table; pyarrow ships no types."""


class RefusedError(GputallyError):
    """A batch that will never be taken. `reason` is one word of a small vocabulary, fit for a metric's label."""

    def __init__(self, reason: str, message: str) -> None:
        """Keep both."""
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much one batch may hold."""

    bytes: int = 8 * 1024 * 1024
    rows: int = 100_000
    devices: int = 4096


def decode(name: str, row_count: int, stream: bytes, limits: BatchLimits) -> Table:
    """Read one table of a batch; its columns come back in the order of `fleet.telemetry`, absent ones as NULL.

    Raises RefusedError for anything but an uncompressed Arrow IPC stream of that table with `row_count` rows.
    """
    if name not in TABLES:
        raise RefusedError("table", f"there is no table {quoted(name)}")
    if row_count > limits.rows:
        raise RefusedError("size", f"{name}: {row_count} rows, more than {limits.rows} in a batch")
    try:
        read = _read(name, stream, row_count)
    except (pa.ArrowException, struct.error, ValueError, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RefusedError("encoding", f"{name}: not an Arrow stream: {first[:200]}") from None
    if read.num_rows != row_count:
        raise RefusedError("size", f"{name}: {read.num_rows} rows where {row_count} were stated")
    arrays = [
        read.column(column.name) if column.name in read.schema.names else pa.nulls(row_count, ARROW_TYPES[column.kind])
        for column in wire_columns(name)
    ]
    return pa.table(arrays, names=[column.name for column in wire_columns(name)])


def _read(name: str, stream: bytes, row_count: int) -> Table:
    messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(stream))
    head = _next(messages)
    if head is None or head.type != "schema":
        raise RefusedError("encoding", f"{name}: the stream does not begin with a schema")
    schema = pa.ipc.read_schema(head)
    _check_schema(name, schema)
    batches = []
    left = row_count
    while (message := _next(messages)) is not None:
        if message.type != "record batch":
            raise RefusedError("encoding", f"{name}: the stream holds a {message.type}")
        length, is_compressed = _record_batch_head(message.metadata.to_pybytes())
        if is_compressed:
            raise RefusedError("encoding", f"{name}: the stream is compressed; send it plain")
        left -= length
        if left < 0 or length < 0:
            raise RefusedError("size", f"{name}: more than the {row_count} rows that were stated")
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
        batches.append(batch)
    return pa.Table.from_batches(batches, schema)


def _next(messages: Any) -> Any:
    """The next message, None at the end."""
    try:
        return messages.read_next_message()
    except StopIteration:
        return None


def _check_schema(name: str, schema: Any) -> None:
    expected = {column.name: column for column in wire_columns(name)}
    if len(set(schema.names)) != len(schema.names):
        raise RefusedError("schema", f"{name}: a column stands twice")
    for field in schema:
        if field.name not in expected:
            raise RefusedError(
                "schema", f"{name}: column {quoted(field.name)} is not known here: upgrade the hub before the agents"
            )
        if field.type != (wanted := ARROW_TYPES[expected[field.name].kind]):
            raise RefusedError("schema", f"{name}: column {field.name} is {str(field.type)[:60]}, not {wanted}")
    missing = [
        column.name for column in expected.values() if not column.is_nullable and column.name not in schema.names
    ]
    if missing:
        raise RefusedError("schema", f"{name}: column {missing[0]} is missing")


def _record_batch_head(metadata: bytes) -> tuple[int, bool]:
    """Number of rows of a record batch message, and whether its body is compressed.

    pyarrow would unpack it first. The fields are those of `Message` and `RecordBatch` in Arrow's Message.fbs; pyarrow
    has verified the flatbuffer already.
    """
    header = _field(metadata, _root(metadata), 2)
    if header is None:
        raise ValueError("a message has no header")
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    length = _field(metadata, batch, 0)
    rows = struct.unpack_from("<q", metadata, length)[0] if length is not None else 0
    return int(rows), _field(metadata, batch, 3) is not None


def _root(buffer: bytes) -> int:
    return int(struct.unpack_from("<I", buffer, 0)[0])


def _field(buffer: bytes, table: int, number: int) -> int | None:
    """Where field `number` of a flatbuffer table lies, or None where it is absent."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    (size,) = struct.unpack_from("<H", buffer, vtable)
    place = 4 + 2 * number
    if place + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", buffer, vtable + place)
    return table + offset if offset else None


def first_where(mask: Any) -> int | None:
    """Row of the first true value, None if there is none."""
    found = pc.index(mask, value=True).as_py()
    return None if found < 0 else int(found)


def check_texts(name: str, table: Table) -> None:
    """Refuse texts beyond the limit, and NULL where a value is required."""
    for column in wire_columns(name):
        values = table.column(column.name)
        if values.null_count and not column.is_nullable:
            refuse(name, column, first_where(pc.is_null(values)), "value", "has no value")
        limit = column.text_limit
        if column.kind is str and (pc.max(pc.utf8_length(values)).as_py() or 0) > limit:
            row = first_where(pc.greater(pc.utf8_length(values), limit))
            refuse(name, column, row, "text", f"is longer than {limit} characters")


def refuse(name: str, column: Column, row: int | None, reason: str, message: str) -> None:
    """Raise RefusedError for one cell."""
    at = 0 if row is None else row
    raise RefusedError(reason, f"{name} row {at}, column {column.name}: {message}")
