"""What the tokens of shared model servers cost in a published period."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargeback.published import Row, published_build, read
from fleet.errors import NotBuiltError, quoted

if TYPE_CHECKING:
    from store.lake import Connection


def token_prices(con: Connection, period: str, team: str | None = None, server: str | None = None) -> list[Row]:
    """Rows of report `token_price`, of one team, or of one server, if given.

    Raises NotBuiltError when the period is not built, or when there is nothing to show, with what would change that.
    """
    published_build(con, period)
    rows = read(con, "token_price", period, teams=None if team is None else [team])
    rows = [row for row in rows if server in (None, row["server"])]
    if not rows and server is not None:
        raise NotBuiltError(f"server {quoted(server)} has no token line in {period}")
    if not rows and team is not None:
        raise NotBuiltError(f"team {quoted(team)} has no token line in {period}")
    if not rows:
        raise NotBuiltError(
            f"no shared model server cost anything in {period}: name them under `servers` of [ledger], then build again"
        )
    return rows
