-- Purpose: from each issuer's invoice to the statement, term by term:
--   invoice total = statement lines + change in prepaid + lines absent from the export (tax) + rounding.
--   The statement is rounded as a whole; an issuer's part of it is its exact cost rounded by largest remainder.
-- Grain: issuer, currency
-- Reads: issuer_total, minor_unit, posting_rounding, statement_line

WITH joined AS (
    SELECT
        t.*, t.billed_total - t.effective_total AS prepaid_change,
        t.effective_total + coalesce(from_pico(r.amount_pico), 0) AS statement_exact
    FROM issuer_total AS t
    LEFT JOIN posting_rounding AS r USING (issuer, currency)
),
booked AS (
    SELECT currency, sum(amount) AS booked_total FROM statement_line GROUP BY ALL
),
floored AS (
    SELECT j.*, u.minor_unit, coalesce(b.booked_total, 0) AS booked_total,
        to_pico(j.statement_exact) AS exact_pico, to_pico(u.minor_unit) AS unit_pico
    FROM joined AS j
    JOIN minor_unit AS u USING (currency)
    LEFT JOIN booked AS b USING (currency)
),
units AS (
    SELECT
        *, ((exact_pico % unit_pico) + unit_pico) % unit_pico AS over_pico,
        (exact_pico - ((exact_pico % unit_pico) + unit_pico) % unit_pico) // unit_pico AS floor_units
    FROM floored
),
ranked AS (
    SELECT
        *, row_number() OVER (PARTITION BY currency ORDER BY over_pico DESC, issuer)
            <= to_pico(booked_total) // unit_pico - sum(floor_units) OVER (PARTITION BY currency) AS gets_one_more
    FROM units
),
shared AS (
    SELECT *, from_pico((floor_units + gets_one_more::INT) * unit_pico) AS statement_total FROM ranked
)
SELECT
    $period AS period, issuer, currency, invoice_total, charge_count, billed_total, statement_total, prepaid_change,
    absent_from_export,
    statement_exact - statement_total AS rounding,
    invoice_total - statement_total - prepaid_change - absent_from_export - (statement_exact - statement_total) AS difference
FROM shared
