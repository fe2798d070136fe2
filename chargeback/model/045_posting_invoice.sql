-- Purpose: what an invoice asks beyond (or below) its own charge lines. A tax that no line carries is shared like other tax,
--   unless it is configured to stay out of the statement. A difference within the tolerance is the provider's rounding and
--   lands on a team like the rest; anything larger is left out here, so that the bridge stays open and the build is refused.
-- Grain: step, currency, issuer, invoice_id
-- Reads: invoice_total, issuer_total

WITH asked AS (
    SELECT issuer, currency, invoice_id, 'rounding' AS step, residual AS amount FROM invoice_total WHERE status = 'rounded'
    UNION ALL
    SELECT i.issuer, i.currency, i.invoice_id, 'invoice_tax' AS step, i.absent_tax AS amount
    FROM invoice_total AS i
    JOIN issuer_total AS t USING (issuer, currency)
    WHERE t.invoice_tax <> 0
)
SELECT
    step, currency, issuer, invoice_id, seconds_of($period_end) // 3600 - 1 AS hour_number,
    'invoice:' || issuer AS from_account,
    'pool:' || issuer || CASE step WHEN 'rounding' THEN '/rounding' ELSE '/tax' END AS to_account, issuer AS pool,
    to_pico(amount) AS amount_pico
FROM asked
WHERE amount <> 0
