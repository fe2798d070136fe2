"""What part of the cost of shared model servers came to nothing in a published period, and what to do about it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from chargeback.published import Row, published_build, read
from fleet.errors import NotBuiltError, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.lake import Connection

NEXT_STEPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cold_start": "restart less often, or load faster: weights on a local disk, one replica kept warm",
        "asleep": "stop the server while it sleeps, so that others can hold its GPUs",
        "idle": "scale down in these hours, to zero where a cold start may be waited for, or share the GPUs",
        "wasted_work": "find who gives up on requests (time limits, retries); let the gateway drop those that wait",
        "over_provisioned": "run fewer replicas",
        "preempted": "leave the cache more room: fewer running requests, more memory, or one more replica",
    }
)
"""Each class of waste with its next step, in the order in which a GPU-second is given to the first that explains it."""


def server_waste(con: Connection, period: str, team: str | None = None, server: str | None = None) -> list[Row]:
    """Rows of report `server_waste` with their `next_step`, of the servers of one team, or of one server, if given.

    Raises NotBuiltError when the period is not built, or when nothing is known, with what would change that.
    """
    published_build(con, period)
    rows = read(con, "server_waste", period, teams=None if team is None else [team])
    rows = [row for row in rows if server in (None, row["server"])]
    if not rows:
        what = f" {quoted(server)}" if server is not None else ""
        whose = f" of team {quoted(team)}" if team is not None else ""
        raise NotBuiltError(
            f"no engine of a server{what}{whose} told in {period} what it did: "
            "let an agent watch it under the name in `servers`"
        )
    order = list(NEXT_STEPS)
    rows.sort(key=lambda row: (row["currency"], row["server"], row["team"] or "", order.index(row["class"])))
    spare = _spare_replicas(con, period)
    return [row | {"next_step": _next_step(row, spare)} for row in rows]


def _next_step(row: Row, spare: Mapping[str, str]) -> str:
    if row["class"] == "over_provisioned" and row["server"] in spare:
        return spare[row["server"]]
    return NEXT_STEPS[row["class"]]


def _spare_replicas(con: Connection, period: str) -> dict[str, str]:
    """By server, how many replicas it should keep, where that is known and fewer than it had."""
    found: dict[str, list[str]] = {}
    for row in read(con, "server_replicas", period):
        if row["needed_replicas"] is not None and row["needed_replicas"] < row["replicas"]:
            which = " ".join(part for part in (row["role"].replace("unified", ""), row["models"]) if part)
            of = f" of {which}" if which else ""
            found.setdefault(row["server"], []).append(f"{row['needed_replicas']} of {row['replicas']} replicas{of}")
    return {server: f"run fewer replicas: {'; '.join(parts)} would have been enough" for server, parts in found.items()}
