"""What a provider's API says, as the rows of an input file: commitments, invoices, prices, the use of reservations.

A sheet is written and loaded like any file of its kind, so its rows are judged as a user's are, and can be looked at.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Cell: TypeAlias = str | int | Decimal | datetime | None
Cells: TypeAlias = "Mapping[str, Cell]"


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows of one kind of input file; a later one of the same name replaces it."""

    kind: str
    """As `gputally load` names it."""
    name: str
    """The file's name, which is that of the source of its rows."""
    rows: tuple[Cells, ...]
    """Cells by column of the file; absent and None are unknown."""
    key: tuple[str, ...]
    """The columns that tell rows apart."""
    is_listed_for_good: bool = True
    """False where the provider stops listing what is over: then the rows of earlier sheets are kept."""


def csv_bytes(columns: Sequence[str], rows: Iterable[Cells]) -> bytes:
    """Rows as a file of these columns: the same rows are the same bytes, in whatever order they were told."""
    lines = sorted([text_of(row.get(column)) for column in columns] for row in rows)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    return out.getvalue().encode()


def text_of(cell: Cell) -> str:
    """A cell as input files write it: plain decimals without padding, UTC times, empty for unknown."""
    if isinstance(cell, Decimal):
        text = f"{cell:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(cell, datetime):
        return cell.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return "" if cell is None else str(cell)
