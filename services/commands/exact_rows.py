"""Rows of a report with exact amounts, as plain values for JSON and as CSV."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from chargeback.finance_csv import gpu_hours, guarded
from fleet.money import format_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chargeback.published import Row

EXACT_DIGITS: Final = 12
"""Amounts and prices of tokens are exact: cents belong to the statement, which rounds them once."""


def plain_row(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    """The columns of a row, GPU time in hours. Amounts are text: JSON numbers are floats to most readers."""
    microseconds = row.get("gpu_microseconds")
    values = row | {"gpu_hours": None if microseconds is None else gpu_hours(microseconds)}
    return {
        name: format_plain(values[name], EXACT_DIGITS) if isinstance(values[name], Decimal) else values[name]
        for name in columns
    }


def csv_bytes(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    """The rows as CSV. Texts are guarded against formulas, as names come from anybody; numbers of ours are not."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        plain = plain_row(row, columns)
        writer.writerow([guarded(plain[name]) if isinstance(row.get(name), str) else plain[name] for name in columns])
    return stream.getvalue().encode("utf-8")
