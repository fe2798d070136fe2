"""Coverage: how much of what a model server's engines counted its gateways explain. Nothing is scaled to fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from chargeback.published import Row, published_build, read
from fleet.errors import NotBuiltError, quoted

if TYPE_CHECKING:
    from datetime import datetime

    from store.lake import Connection

Span: TypeAlias = Literal["hour", "day", "period"]
KINDS: Final = ("input", "output")
GAP_PERCENT: Final = 5
"""A larger part of the engine's tokens that no gateway explains is flagged."""
RATIO_DIGITS: Final = 6


def token_coverage(
    con: Connection, period: str, *, zone: str, span: Span = "day", server: str | None = None
) -> list[Row]:
    """One row per server and hour, day (of the time zone) or period, each with gateway tokens over engine tokens.

    Tokens are sums of the hours in which both sides are known (`input_hours`, `output_hours`). A ratio is text, rounded
    down: 1.000000 is all of it. It is None, with a `reason`, where a side is unknown or the engine counted nothing.
    `flag` says `gateway_over_engine` (a negative gap) or `tokens_outside_gateway` (a gap of more than 5 %).

    Raises NotBuiltError when the period is not built, or when there is no such server in it.
    """
    published_build(con, period)
    hours = [row for row in read(con, "token_coverage", period, zone=zone) if server in (None, row["server"])]
    if not hours:
        which = "model server" if server is None else f"model server {quoted(server)}"
        raise NotBuiltError(f"no shared {which} cost anything in {period}")
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in hours:
        groups.setdefault((row["server"], _start(row["local_start"], period, span)), []).append(row)
    return [_covered(name, start, rows) for (name, start), rows in groups.items()]


def _start(local: datetime, period: str, span: Span) -> str:
    if span == "period":
        return period
    return local.date().isoformat() if span == "day" else local.isoformat(" ", "minutes")


def _covered(server: str, start: str, hours: list[Row]) -> Row:
    row: Row = {"server": server, "start": start, "hours": len(hours)}
    for kind in KINDS:
        names = f"gateway_{kind}_tokens", f"engine_{kind}_tokens"
        known = [hour for hour in hours if None not in (hour[names[0]], hour[names[1]])]
        row[f"{kind}_hours"] = len(known)
        gateway, engine = (sum(hour[name] for hour in known) if known else None for name in names)
        row |= {names[0]: gateway, names[1]: engine, f"{kind}_ratio": _ratio(gateway, engine)}
    unreported = [hour["unreported_requests"] for hour in hours if hour["unreported_requests"] is not None]
    return row | {
        "unreported_requests": sum(unreported) if unreported else None,
        "flag": _flag(row),
        "reason": _reason(row, hours),
    }


def _ratio(gateway: int | None, engine: int | None) -> str | None:
    if gateway is None or not engine:
        return None
    whole, rest = divmod(gateway * 10**RATIO_DIGITS // engine, 10**RATIO_DIGITS)
    return f"{whole}.{rest:0{RATIO_DIGITS}d}"


def _flag(row: Row) -> str | None:
    gaps = [
        (row[f"engine_{kind}_tokens"] - row[f"gateway_{kind}_tokens"], row[f"engine_{kind}_tokens"])
        for kind in KINDS
        if row[f"engine_{kind}_tokens"] is not None
    ]
    if any(gap < 0 for gap, _ in gaps):
        return "gateway_over_engine"
    return "tokens_outside_gateway" if any(100 * gap > GAP_PERCENT * whole for gap, whole in gaps) else None


def _reason(row: Row, hours: list[Row]) -> str | None:
    """Why a ratio is missing; None when both are there."""
    missing = [kind for kind in KINDS if row[f"{kind}_ratio"] is None]
    if not missing:
        return None
    kind = missing[0]
    if row[f"engine_{kind}_tokens"] == 0:
        return "the engine counted no token"
    if all(hour[f"engine_{kind}_tokens"] is None for hour in hours):
        return "the engine's own count is not known"
    if any(hour["is_told"] for hour in hours):
        return "gateways report requests without their tokens"
    return "no gateway reports this server"
