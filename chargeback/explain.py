"""Walk a team's amount back: statement line, how it was shared, and the invoice lines the money came from."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

from chargeback.published import Row, published_build, read
from fleet.errors import NotBuiltError, quoted

if TYPE_CHECKING:
    from store.lake import Connection

PICO = Decimal("1e-12")


@dataclass(frozen=True, slots=True)
class Explanation:
    """What lies behind a team's month."""

    build: Row
    lines: list[Row]
    """Statement lines with pool totals and weights (report explain_line)."""
    charges: list[Row]
    """Invoice lines with the team's `part` of each, largest first."""
    by_invoice: list[Row]
    """The same summed per file and invoice: `part`, number of charge lines, first and last row."""


def explain(con: Connection, period: str, team: str, category: str | None = None) -> Explanation:
    """Explain a team's published month, or one category of it.

    Raises NotBuiltError when the period is not built or the team has no such line.
    """
    build = published_build(con, period)
    lines = [line for line in read(con, "explain_line", period, teams=[team]) if category in (None, line["category"])]
    if not lines:
        what = f"no {category} line" if category else "no line"
        raise NotBuiltError(f"team {quoted(team)} has {what} in {period}")
    charges = read(con, "explain_charge", period, teams=[team], category=category)
    for charge in charges:
        charge["part"] = _money(charge.pop("part_pico"))
    return Explanation(build, lines, charges, _by_invoice(charges))


def _money(pico: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return pico * PICO


def _by_invoice(charges: list[Row]) -> list[Row]:
    groups: dict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
    for charge in charges:
        groups[charge["source_file"], charge["issuer"], charge["invoice_id"] or "", charge["currency"]].append(charge)
    return [
        {
            "source_file": file,
            "issuer": issuer,
            "invoice_id": invoice,
            "currency": currency,
            "charge_lines": len(members),
            "first_row": min(member["source_row"] for member in members),
            "last_row": max(member["source_row"] for member in members),
            "part": sum((member["part"] for member in members), Decimal(0)),
        }
        for (file, issuer, invoice, currency), members in sorted(groups.items())
    ]
