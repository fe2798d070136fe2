"""The text of `gputally explain`: amounts with the arithmetic that leads to them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from fleet.errors import one_line
from fleet.money import format_money

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chargeback.explain import Explanation
    from chargeback.published import Row

WEIGHT_MEANING = {
    "proportional": "the team's direct cost in the pool over that of all teams",
    "even": "one for each team that held anything in the pool",
    "quota": "the team's quota that it did not hold, priced hour by hour, over that of all teams",
}


def explanation_lines(found: Explanation, period: str, team: str, charge_count: int) -> Iterator[str]:
    """Lines for the terminal: each statement line with its arithmetic, then the invoice lines behind all of them."""
    yield f"{one_line(team)}, {period}/v{found.build['version']} (build {found.build['build_id']})"
    for line in found.lines:
        yield ""
        yield from _line_lines(line)
    yield ""
    yield "from the invoice:"
    for group in found.by_invoice:
        yield (
            f"  {format_money(group['part'], group['currency'])}  {one_line(group['issuer'])} invoice "
            f"{one_line(group['invoice_id'] or '(none)')}: {group['charge_lines']:,} charge lines, "
            f"{one_line(group['source_file'])} rows {group['first_row']}-{group['last_row']}"
        )
    if charge_count and found.charges:
        yield f"largest {min(charge_count, len(found.charges))} of {len(found.charges):,} charge lines:"
        yield from (_charge_line(charge) for charge in found.charges[:charge_count])


def _line_lines(line: Row) -> Iterator[str]:
    hours = Decimal(line["gpu_microseconds"]) / 3_600_000_000
    currency = line["currency"]
    yield (
        f"{line['category']:<10} {format_money(line['amount'], currency)}  (exact {line['exact_amount']:f}), "
        f"{hours:,.1f} GPU-hours, pool {one_line(line['pool'])}, policy {line['policy']}"
    )
    if line["weight"] is None:
        if hours:
            rate = line["exact_amount"] / hours
            yield f"  = {hours:,.6f} GPU-hours held at {rate:,.6f} {currency} a GPU-hour on average"
        return
    pool_hours = Decimal(line["pool_gpu_microseconds"] or 0) / 3_600_000_000
    part, whole = _weight(line["weight"], line), _weight(line["total_weight"], line)
    yield f"  = {line['pool_amount']:f} {currency} of the pool ({pool_hours:,.1f} GPU-hours) x {part} / {whole}"
    meaning = WEIGHT_MEANING.get(line["policy"], "the central team takes it all")
    yield f"  weight: {meaning}"


def _weight(weight: Decimal, line: Row) -> str:
    """Weights that are money are kept in 10^-12 units; show them as the amounts that they are."""
    return f"{weight.scaleb(-12):f}" if line["policy"] in ("proportional", "quota") else f"{weight:f}"


def _charge_line(charge: Row) -> str:
    cost = charge["billed_cost"] or charge["effective_cost"]
    return (
        f"  {charge['part']:,.6f} of {cost.normalize():,f} {charge['currency']}  "
        f"{one_line(charge['source_file'])} row {charge['source_row']}, "
        f"{one_line(_what(charge))}, {charge['charge_period_start']:%Y-%m-%d %H:%M} UTC"
    )


def _what(charge: Row) -> str:
    """The resource; of owned hardware, whose rows have several parts, the part."""
    if charge["invoice_id"] == "self-issued":
        return str(charge["charge_description"])
    return str(charge["resource_id"] or "no resource")
