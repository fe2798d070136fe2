-- Identity: A2
-- Severity: warn
-- Purpose: what an AWS report bills for usage under a Savings Plan at the on-demand price, its Negation lines take back, plan by
--   plan. If they do not, the plan's prepaid account keeps the difference.
-- Source: AWS Data Exports table dictionary, line_item_line_item_type
-- Reads: staged_charge

SELECT
    min(source_row) AS source_row, 'BilledCost' AS column_name, CAST(sum(billed_cost) AS VARCHAR) AS value,
    'is left of the covered usage of ' || commitment_discount_id || ' after its Negation lines' AS message
FROM staged_charge
WHERE provider = 'AWS' AND x_line_type IN ('SavingsPlanCoveredUsage', 'SavingsPlanNegation')
  AND commitment_discount_status = 'Used'
GROUP BY commitment_discount_id, billing_currency, billing_period_start
HAVING abs(sum(billed_cost)) >= 0.01
