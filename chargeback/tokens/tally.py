"""Sum usages by server, tenant, model and hour. Whole numbers only, so the order of the lines cannot matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chargeback.tokens.fields import FieldError
from chargeback.tokens.usage import Tokens

if TYPE_CHECKING:
    from datetime import datetime

    from chargeback.tokens.usage import Usage

MAX_STORED = 2**63 - 1


class _Group(NamedTuple):
    """What is summed together. A count that was reported is never added to one that was not."""

    server: str | None
    tenant: str | None
    model: str | None
    hour_start: datetime
    is_reported: tuple[bool, ...]


class Tally:
    """The running sums of a file."""

    def __init__(self) -> None:
        self._sums: dict[_Group, list[int]] = {}
        self._first_rows: dict[_Group, int] = {}
        self._rows_by_identity: dict[str, int] = {}

    def add(self, row: int, usage: Usage) -> None:
        """Add what a row of the file says; FieldError when an earlier row says it already."""
        if usage.identity is not None:
            earlier = self._rows_by_identity.setdefault(usage.identity, row)
            if earlier != row:
                raise FieldError("request_id", f"stands in row {earlier} already: exports overlap")
        group = _Group(
            usage.server,
            usage.tenant,
            usage.model,
            usage.hour_start,
            tuple(count is not None for count in usage.tokens),
        )
        counts = (
            *(count or 0 for count in usage.tokens),
            usage.requests,
            usage.failed_requests,
            usage.cache_hit_requests,
        )
        sums = self._sums.setdefault(group, [0] * len(counts))
        for at, count in enumerate(counts):
            sums[at] += count
        self._first_rows.setdefault(group, row)
        if max(sums) > MAX_STORED:
            raise FieldError(None, "makes a sum of more than 64 bits")

    def rows(self) -> list[tuple[object, ...]]:
        """One row a group, in the order of the columns of a tokens file, after the first row that spoke of it."""
        return [
            (row, *group[:4], *_in_file_order(group.is_reported, sums[:3]), *sums[3:])
            for (group, sums), row in zip(self._sums.items(), self._first_rows.values(), strict=True)
        ]


def _in_file_order(is_reported: tuple[bool, ...], sums: list[int]) -> tuple[int | None, int | None, int | None]:
    tokens = Tokens(*(count if known else None for known, count in zip(is_reported, sums, strict=True)))
    return tokens.input, tokens.output, tokens.cached
