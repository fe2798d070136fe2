"""What `gputally tokens --coverage` prints: how much of what engines counted the gateways explain."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import TYPE_CHECKING, Final

from chargeback.finance_csv import guarded
from fleet.errors import one_line
from services.terminal import say, table

if TYPE_CHECKING:
    from chargeback.published import Row

COLUMNS: Final = (
    "server", "start", "hours", "input_hours", "gateway_input_tokens", "engine_input_tokens", "input_ratio",
    "output_hours", "gateway_output_tokens", "engine_output_tokens", "output_ratio", "unreported_requests", "flag",
    "reason",
)  # fmt: skip
HEADINGS: Final = (
    ("server", "left"), ("start", "left"), ("hours", "right"), ("gateway input", "right"), ("engine input", "right"),
    ("covered", "right"), ("gateway output", "right"), ("engine output", "right"), ("covered", "right"),
    ("remark", "left"),
)  # fmt: skip


def print_coverage(rows: list[Row], form: str) -> None:
    """Print rows of `token_coverage` as `form`: "table", "csv" or "json"."""
    if form == "json":
        say(json.dumps([{name: row[name] for name in COLUMNS} for row in rows], indent=2))
    elif form == "csv":
        sys.stdout.buffer.write(_csv_bytes(rows))
    else:
        table(HEADINGS, [_cells(row) for row in rows])


def _csv_bytes(rows: list[Row]) -> bytes:
    """Names come from anybody, so they are guarded against formulas; what we write ourselves is not."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([guarded(row[name]) if name == "server" else row[name] for name in COLUMNS] for row in rows)
    return stream.getvalue().encode("utf-8")


def _cells(row: Row) -> list[str]:
    def count(name: str) -> str:
        return "-" if row[name] is None else f"{row[name]:,}"

    return [
        one_line(row["server"]),
        row["start"],
        f"{row['hours']:,}",
        count("gateway_input_tokens"),
        count("engine_input_tokens"),
        row["input_ratio"] or "-",
        count("gateway_output_tokens"),
        count("engine_output_tokens"),
        row["output_ratio"] or "-",
        ", ".join(filter(None, (row["flag"], row["reason"]))),
    ]
