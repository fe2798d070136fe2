-- Identity: I12
-- Severity: warn
-- Purpose: a charge period lies in its billing period. Corrections, one-time charges (a purchase or an unused fee of several
--   months) and purchases may reach further; a day on either side is another time zone's month. Late rows are named: they
--   are billed in another month than used.
-- Source: FOCUS 1.2 ChargePeriodStart, BillingPeriodStart
-- Reads: staged_charge

SELECT
    source_row,
    CASE WHEN charge_period_start < billing_period_start - INTERVAL 1 DAY THEN 'ChargePeriodStart' ELSE 'ChargePeriodEnd' END
        AS column_name,
    strftime(
        CASE WHEN charge_period_start < billing_period_start - INTERVAL 1 DAY THEN charge_period_start ELSE charge_period_end
        END, '%Y-%m-%dT%H:%M:%SZ'
    ) AS value,
    'lies outside the billing period that starts ' || strftime(billing_period_start, '%Y-%m-%dT%H:%M:%SZ') AS message
FROM staged_charge
WHERE lower(coalesce(charge_class, '')) <> 'correction' AND lower(coalesce(charge_frequency, '')) <> 'one-time'
  AND lower(charge_category) <> 'purchase'
  AND (
      -- Without the first comparisons each row would pay for arithmetic of the calendar.
      (charge_period_start < billing_period_start AND charge_period_start < billing_period_start - INTERVAL 1 DAY)
      OR (charge_period_end > billing_period_end AND charge_period_end > billing_period_end + INTERVAL 1 DAY)
  )
