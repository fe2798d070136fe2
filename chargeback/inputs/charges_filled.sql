-- Rule: a charge has its account, issuer, currency, times, category and costs. Where a provider's own columns are mapped, one that
--   cannot be read arrives here empty.
-- Kind: charges
-- Reads: staged_charge

SELECT
    source_row, column_name, CAST(NULL AS VARCHAR) AS value,
    'is empty, or what it is made from cannot be read' || coalesce(' (line type ' || x_line_type || ')', '')
        || coalesce(' in ' || part, '') AS message
FROM (
    SELECT
        coalesce(part_row, source_row) AS source_row, part, x_line_type,
        CASE
            WHEN invoice_issuer IS NULL THEN 'InvoiceIssuerName'
            WHEN billing_account_id IS NULL THEN 'BillingAccountId'
            WHEN billing_period_start IS NULL OR billing_period_end IS NULL THEN 'BillingPeriodStart'
            WHEN charge_period_start IS NULL THEN 'ChargePeriodStart'
            WHEN charge_period_end IS NULL THEN 'ChargePeriodEnd'
            WHEN charge_category IS NULL THEN 'ChargeCategory'
            WHEN billed_cost IS NULL THEN 'BilledCost'
            WHEN effective_cost IS NULL THEN 'EffectiveCost'
            WHEN billing_currency IS NULL THEN 'BillingCurrency'
        END AS column_name
    FROM staged_charge
)
WHERE column_name IS NOT NULL
ORDER BY source_row
LIMIT $max_problems
