"""Turn exact amounts into the cents that finance books."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.money import Line, minor_unit_digits, round_lines
from fleet.period import month

if TYPE_CHECKING:
    from decimal import Decimal

    from store.lake import Connection


def book_statement(con: Connection, period: str, version: int) -> None:
    """Create temporary table `statement_line` from `statement_exact`, each currency rounded once as a whole.

    Every team's total and every category's total is the largest-remainder share of the grand total
    (fleet.statement_rounding). Cost centre and GL account are the last ones valid in the period.
    """
    rows = con.execute(
        "SELECT currency, team, category, pool, gpu_model, policy, exact_amount FROM statement_exact ORDER BY ALL"
    ).fetchall()
    con.execute(
        "CREATE OR REPLACE TEMP TABLE booked (currency VARCHAR, team VARCHAR, category VARCHAR, pool VARCHAR, "
        "gpu_model VARCHAR, policy VARCHAR, amount DECIMAL(38, 12))"
    )
    for currency in sorted({row[0] for row in rows}):
        of_currency = [row for row in rows if row[0] == currency]
        amounts = _cents([(row[1], row[2], row[6]) for row in of_currency], minor_unit_digits(currency))
        con.executemany(
            "INSERT INTO booked VALUES (?, ?, ?, ?, ?, ?, ?)",
            [[*row[:6], amount] for row, amount in zip(of_currency, amounts, strict=True)],
        )
    span = month(period)
    values = {"period": period, "version": version, "period_start": span.start, "period_end": span.end}
    con.execute(_STATEMENT_LINE, values)
    con.execute("DROP TABLE booked")


def _cents(lines: list[tuple[str, str, Decimal]], digits: int) -> list[Decimal]:
    return round_lines([Line(team, category, amount) for team, category, amount in lines], digits=digits)


_STATEMENT_LINE = """
    CREATE OR REPLACE TEMP TABLE statement_line AS
    WITH known AS (
        SELECT
            team, arg_max(cost_centre, coalesce(valid_from, '-infinity'::TIMESTAMPTZ)) AS cost_centre,
            arg_max(gl_account, coalesce(valid_from, '-infinity'::TIMESTAMPTZ)) AS gl_account
        FROM team_rule
        WHERE (valid_from IS NULL OR valid_from < $period_end) AND (valid_to IS NULL OR valid_to > $period_start)
        GROUP BY team
    )
    SELECT
        CAST($period AS VARCHAR) AS period, CAST($version AS INTEGER) AS version, e.team, k.cost_centre, k.gl_account,
        e.category, e.pool, e.gpu_model, e.policy, e.gpu_microseconds, e.exact_amount, b.amount, e.currency
    FROM statement_exact AS e
    LEFT JOIN known AS k USING (team)
    JOIN booked AS b
        ON b.currency = e.currency AND b.team = e.team AND b.category = e.category
       AND b.pool = e.pool AND b.gpu_model IS NOT DISTINCT FROM e.gpu_model AND b.policy = e.policy
"""
