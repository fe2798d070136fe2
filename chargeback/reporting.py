"""A statement that is booked in several currencies, in the one that the company reports in.

The books stay in the currencies of the invoices. Each currency's total is converted once, with the one rate that the
period has for it, and the converted total is shared over the lines like any statement (fleet.statement_rounding): lines
that were converted one by one would not add up to it. The rate at which the invoice is paid later is no matter of
chargeback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chargeback.published import Row, read, statement_rows
from fleet.errors import NotBuiltError, quoted
from fleet.money import Line, minor_unit_digits, round_lines

if TYPE_CHECKING:
    from store.lake import Connection


def convert_statement(con: Connection, period: str) -> None:
    """Create temporary table `reporting_line` from `statement_line`: lines of other currencies than the reporting one.

    Lines of a currency without a rate in the period are left out; step `bill_gap` names their total.
    """
    con.execute(_REPORTING_LINE, {"period": period})
    for currency, reporting_currency in con.execute(_PAIRS).fetchall():
        rows = con.execute(_CONVERTED, [currency]).fetchall()
        amounts = round_lines(
            [Line(team, category, exact) for _, team, category, exact in rows],
            digits=minor_unit_digits(reporting_currency),
        )
        con.executemany(
            "UPDATE reporting_line SET amount = ? WHERE line_number = ?",
            [[amount, row[0]] for row, amount in zip(rows, amounts, strict=True)],
        )


def reported_rows(con: Connection, period: str, currency: str, team: str | None = None) -> list[Row]:
    """Statement lines of `period` in the reporting currency, of one team if given; each names what was booked.

    Raises NotBuiltError when the period is not built, when it was not built for this currency, and when a line has
    no rate: a total without it would be wrong.
    """
    booked = statement_rows(con, period, team)
    teams = None if team is None else [team]
    converted = read(con, "reporting_line", period, teams=teams)
    known = {row["booked_currency"] for row in converted if row["currency"] == currency}
    missing = sorted({row["currency"] for row in booked} - known - {currency})
    if missing:
        raise NotBuiltError(
            f"{period} has no rate from {', '.join(missing)} to {currency}: load one "
            f"(`gputally load rates FILE`), set ledger.currency to {quoted(currency)} and build again"
        )
    same = [_as_reported(row) for row in booked if row["currency"] == currency]
    return sorted(same + converted, key=_place)


def _place(row: Row) -> tuple[str, str, str, str]:
    return row["team"], row["category"], row["pool"], row["gpu_model"] or ""


def _as_reported(row: Row) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name != "exact_amount"}
    return kept | {
        "booked_amount": row["amount"],
        "booked_currency": row["currency"],
        "rate": None,
        "rate_source": None,
    }


_PAIRS = "SELECT DISTINCT booked_currency, currency FROM reporting_line ORDER BY ALL"
_CONVERTED = """
    SELECT
        line_number, team, category,
        CAST(CAST(booked_amount AS DECIMAL(20, 6)) * CAST(rate AS DECIMAL(18, 12)) AS DECIMAL(38, 18)) AS exact_amount
    FROM reporting_line WHERE booked_currency = ? ORDER BY line_number
"""
_REPORTING_LINE = """
    CREATE OR REPLACE TEMP TABLE reporting_line AS
    WITH rated AS (
        SELECT currency, reporting_currency, min(rate) AS rate, min(rate_source) AS rate_source
        FROM exchange_rate WHERE period = $period GROUP BY ALL
    )
    SELECT
        row_number() OVER (ORDER BY l.currency, l.team, l.category, l.pool, l.gpu_model, l.policy) AS line_number,
        l.period, l.version, l.team, l.cost_centre, l.gl_account, l.category, l.pool, l.gpu_model, l.policy,
        l.gpu_microseconds, l.amount AS booked_amount, l.currency AS booked_currency, r.rate, r.rate_source,
        CAST(NULL AS DECIMAL(38, 12)) AS amount, r.reporting_currency AS currency
    FROM statement_line AS l
    JOIN setting AS s ON l.currency <> s.reporting_currency
    JOIN rated AS r ON r.currency = l.currency AND r.reporting_currency = s.reporting_currency
"""
