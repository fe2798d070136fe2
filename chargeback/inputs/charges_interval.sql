-- Rule: charge and billing periods do not end before they start.
-- Kind: charges
-- Reads: staged_charge

SELECT source_row, 'ChargePeriodEnd' AS column_name, strftime(charge_period_end, '%Y-%m-%dT%H:%M:%SZ') AS value,
       'is before ChargePeriodStart' AS message
FROM staged_charge WHERE charge_period_end < charge_period_start
UNION ALL
SELECT source_row, 'BillingPeriodEnd', strftime(billing_period_end, '%Y-%m-%dT%H:%M:%SZ'), 'is not after BillingPeriodStart'
FROM staged_charge WHERE billing_period_end <= billing_period_start
ORDER BY source_row
LIMIT $max_problems
