-- Purpose: what the invoice asks beyond (or below) its own charge lines, when that is within the tolerance of FOCUS 1.4
--   InvoiceDetail: max(100, 0.5 * sqrt(lines)) minor units. It is the provider's rounding and lands on a team like the
--   rest; anything larger is left out here, so that the bridge stays open and the build is refused.
-- Grain: currency, issuer
-- Reads: charge_span, invoice, minor_unit

WITH billed AS (
    SELECT
        issuer, currency, count(*) AS line_count, sum(billed_cost) AS billed_total,
        count(*) FILTER (WHERE kind = 'tax') AS tax_line_count
    FROM charge_span GROUP BY ALL
),
invoiced AS (
    SELECT issuer, currency, sum(total_amount) AS invoice_total, sum(tax_amount) AS tax_total
    FROM invoice
    WHERE period = $period AND lower(coalesce(status, '')) <> 'voided'
    GROUP BY ALL
),
residual AS (
    SELECT
        b.issuer, b.currency, to_pico(u.minor_unit) AS unit_pico, b.line_count,
        i.invoice_total - b.billed_total
            - CASE WHEN b.tax_line_count = 0 THEN coalesce(i.tax_total, 0) ELSE 0 END AS residual_amount
    FROM billed AS b
    JOIN invoiced AS i USING (issuer, currency)
    JOIN minor_unit AS u USING (currency)
)
SELECT
    'rounding' AS step, currency, issuer, seconds_of($period_end) // 3600 - 1 AS hour_number,
    'invoice:' || issuer AS from_account, 'pool:' || issuer || '/rounding' AS to_account, issuer AS pool,
    to_pico(residual_amount) AS amount_pico
FROM residual
-- Squared in thousandths of a minor unit, so that any invoice's residual fits.
WHERE residual_amount <> 0
  AND abs(to_pico(residual_amount)) * 1000 // unit_pico * (abs(to_pico(residual_amount)) * 1000 // unit_pico) * 4
      <= greatest(40000000000, CAST(line_count AS HUGEINT) * 1000000)
