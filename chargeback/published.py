"""Read what was published: plain rows, money as Decimal, for the command line and the finance files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chargeback.reports import report
from fleet.errors import NotBuiltError, quoted
from store.sqlfile import rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.lake import Connection

Row = dict[str, Any]


def read(con: Connection, name: str, period: str, *, teams: Sequence[str] | None = None, **values: Any) -> list[Row]:
    """Rows of the report `reports/<name>.sql`; `teams` None means every team."""
    bound = {"period": period, "all_teams": teams is None, "teams": list(teams or ()), **values}
    columns, rows = rows_of(con, report(name), bound)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def published_build(con: Connection, period: str) -> Row:
    """The build shown for `period`. Raises NotBuiltError, naming the next command, when there is none."""
    found = read(con, "published_build", period)
    if not found:
        raise NotBuiltError(f"{period} has not been built: run `gputally build {period}`")
    return found[0]


def statement_rows(con: Connection, period: str, team: str | None = None) -> list[Row]:
    """Statement lines of `period`, of one team if given.

    Raises NotBuiltError when the period is not built, or when the team has no line in it.
    """
    published_build(con, period)
    rows = read(con, "statement", period, teams=None if team is None else [team])
    if team is not None and not rows:
        raise NotBuiltError(f"team {quoted(team)} has no line in {period}")
    return rows
