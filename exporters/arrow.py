"""Rows of a table as one Arrow IPC stream, built without pyarrow so that the agent stays small.

The schema is that of `fleet.telemetry`: 64-bit integers, UTF-8 texts and truth values, nullable where a value may be
unknown. Format: https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format
"""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING, Any, Final

import nanoarrow as na
from nanoarrow import ipc

from fleet.telemetry import TABLES, columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.telemetry import Column, Row

_TYPES: Final[Mapping[type, Callable[..., Any]]] = {int: na.int64, str: na.string, bool: na.bool_}


def encode(table: str, rows: Sequence[Row]) -> bytes:
    """The rows as an Arrow IPC stream of one record batch.

    Texts are cut to what the hub takes. KeyError for a table that is none, TypeError for a row of another table,
    ValueError, naming the column, for a value that its column cannot hold: these are mistakes of whoever made the row.
    """
    for row in rows:
        if type(row) is not TABLES[table]:
            raise TypeError(f"a row of {table} cannot be a {type(row).__name__}")
    schema, described = _schema(table)
    children = [_column(column, rows) for column in described]
    batch = na.c_array_from_buffers(schema, len(rows), [None], children=children)
    out = io.BytesIO()
    with ipc.StreamWriter.from_writable(out) as writer:
        writer.write_array(batch)
    return out.getvalue()


@functools.cache
def _schema(table: str) -> tuple[Any, tuple[Column, ...]]:
    described = columns(table)
    fields = {column.name: _TYPES[column.kind](nullable=column.is_nullable) for column in described}
    return na.struct(fields, nullable=False), described


def _column(column: Column, rows: Sequence[Row]) -> Any:
    values = [getattr(row, column.name) for row in rows]
    if not column.is_nullable and None in values:
        raise ValueError(f"column {column.name} needs a value in every row")
    if column.kind is str:
        values = [_sendable(value, column.text_limit) if value is not None else None for value in values]
    try:
        return na.c_array(values, _TYPES[column.kind](nullable=column.is_nullable))
    except ValueError:
        raise ValueError(f"column {column.name} holds a value that does not fit it") from None


def _sendable(text: str, limit: int) -> str:
    """The text, cut, and with halves of surrogate pairs (what Python makes of bytes that are no UTF-8) replaced."""
    cut = text[:limit]
    return cut if cut.isascii() else cut.encode(errors="replace").decode()
