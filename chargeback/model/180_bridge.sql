-- Purpose: from each issuer's invoice to the statement, term by term:
--   invoice total = statement lines + change in prepaid + lines absent from the export (tax) + rounding.
--   Tax that only the invoice states is among the statement lines if it is shared; how much it is stands beside.
--   The statement is rounded as a whole; an issuer's part of it is its exact cost rounded by largest remainder.
-- Grain: issuer, currency
-- Reads: issuer_total, minor_unit, posting_invoice, statement_line

WITH asked AS (
    SELECT issuer, currency, from_pico(sum(amount_pico)) AS amount FROM posting_invoice GROUP BY ALL
),
joined AS (
    SELECT
        t.*, t.billed_total - t.effective_total AS prepaid_change,
        t.effective_total + coalesce(a.amount, 0) AS statement_exact
    FROM issuer_total AS t
    LEFT JOIN asked AS a USING (issuer, currency)
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
    absent_from_export, CAST(invoice_tax AS DECIMAL(38, 12)) AS invoice_tax,
    statement_exact - statement_total AS rounding,
    invoice_total - statement_total - prepaid_change - absent_from_export - (statement_exact - statement_total) AS difference
FROM shared
