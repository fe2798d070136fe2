-- Identity: M5
-- Severity: warn
-- Purpose: the files of an Azure delivery are of one billing period: with those of several, each can be replaced only as a whole.
-- Source: Azure's schemas of cost and usage details, BillingPeriodStartDate
-- Reads: staged_charge

SELECT
    min(source_row) AS source_row, 'BillingPeriodStartDate' AS column_name,
    strftime(billing_period_start, '%Y-%m-%d') AS value,
    'is another period than that of other rows: load the files of each period by themselves' AS message
FROM staged_charge
WHERE provider = 'Microsoft' AND x_line_type IS NOT NULL AND part IS NOT NULL
  AND billing_period_start > (SELECT min(billing_period_start) FROM staged_charge)
GROUP BY billing_period_start
