-- Purpose: what the invoice asks beyond (or below) its own charge lines, when that is within the tolerance of FOCUS 1.4
--   InvoiceDetail: max(100, 0.5 * sqrt(lines)) minor units. It is the provider's rounding and lands on a team like the
--   rest; anything larger is left out here, so that the bridge stays open and the build is refused.
-- Grain: currency, issuer
-- Reads: issuer_total, minor_unit

WITH residual AS (
    SELECT
        t.issuer, t.currency, to_pico(u.minor_unit) AS unit_pico, t.charge_count,
        t.invoice_total - t.billed_total - t.absent_from_export AS residual_amount
    FROM issuer_total AS t
    JOIN minor_unit AS u USING (currency)
    WHERE t.charge_count > 0
)
SELECT
    'rounding' AS step, currency, issuer, seconds_of($period_end) // 3600 - 1 AS hour_number,
    'invoice:' || issuer AS from_account, 'pool:' || issuer || '/rounding' AS to_account, issuer AS pool,
    to_pico(residual_amount) AS amount_pico
FROM residual
-- Squared in thousandths of a minor unit, so that any invoice's residual fits.
WHERE residual_amount <> 0
  AND abs(to_pico(residual_amount)) * 1000 // unit_pico * (abs(to_pico(residual_amount)) * 1000 // unit_pico) * 4
      <= greatest(40000000000, CAST(charge_count AS HUGEINT) * 1000000)
