"""Say what a load of charges accepted, flagged and rejected: `gputally load charges --explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargeback.sources.judging import sentence
from fleet.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chargeback.sources.intake import Verdict

WORDS = {"error": "rejected", "warn": "flagged", "info": "noted"}


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """Rows and money by currency and category, then each broken identity with its first rows."""
    loaded = verdict.loaded
    yield f"{one_line(loaded.source)}: {loaded.outcome}, {_rows(loaded.row_count)}"
    for currency, category, is_split, row_count, billed, effective in verdict.sums:
        note = ", repeats money of other rows: in no sum" if is_split else ""
        yield (
            f"  {one_line(currency)} {one_line(category)}: {_rows(row_count)}, billed {billed:f}, "
            f"effective {effective:f}{note}"
        )
    for found in verdict.broken:
        yield f"  {WORDS[found.severity]} {found.identity}: {_rows(found.row_count)}"
        for row in found.rows:
            where = f"{one_line(row.part)} row {row.source_row}" if row.part else f"row {row.source_row}"
            column = f", column {one_line(row.column)}" if row.column else ""
            yield f"    {where}{column}: {one_line(sentence(row))}"
        if found.row_count > len(found.rows):
            yield f"    and {found.row_count - len(found.rows):,} more"


def flag_lines(verdict: Verdict) -> Iterator[str]:
    """One line that counts what was flagged; nothing when all is well. What is only noted is for `--explain`."""
    flagged = [f"{found.identity} in {_rows(found.row_count)}" for found in verdict.broken if found.severity != "info"]
    if flagged:
        yield f"{one_line(verdict.loaded.source)}: flagged {', '.join(flagged)} (`--explain` says which)"


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
