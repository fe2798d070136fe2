-- Identity: I15
-- Severity: warn
-- Purpose: credits that pay for usage go on paying for it: from one day to the next, their share of an account's usage does not
--   fall by half of it or more. When they end, the invoice grows although nobody uses more. A credit that covers more than a
--   day (AWS states one for the month) says nothing about days.
-- Source: kubernetes/k8s.io issue 6245, credits that expired a day early
-- Reads: staged_charge

WITH daily AS (
    SELECT DISTINCT invoice_issuer, billing_account_id, billing_currency, billing_period_start
    FROM staged_charge
    WHERE lower(charge_category) = 'credit' AND charge_period_end <= charge_period_start + INTERVAL 1 DAY
),
day_of_use AS (
    SELECT
        invoice_issuer, billing_account_id, billing_currency, billing_period_start,
        date_trunc('day', timezone('UTC', charge_period_start)) AS day, min(source_row) AS source_row,
        sum(effective_cost) FILTER (WHERE lower(charge_category) = 'usage') AS usage_cost,
        coalesce(-sum(billed_cost) FILTER (
            WHERE lower(charge_category) = 'credit' AND charge_period_end <= charge_period_start + INTERVAL 1 DAY
        ), 0) AS credit_amount
    FROM staged_charge
    SEMI JOIN daily USING (invoice_issuer, billing_account_id, billing_currency, billing_period_start)
    WHERE lower(coalesce(charge_class, '')) <> 'correction' AND NOT coalesce(x_is_split_row, false)
    GROUP BY ALL
    HAVING usage_cost > 0
),
beside AS (
    SELECT
        *, lag(usage_cost) OVER before AS usage_before, lag(credit_amount) OVER before AS credit_before
    FROM day_of_use
    WINDOW before AS (
        PARTITION BY invoice_issuer, billing_account_id, billing_currency, billing_period_start ORDER BY day
    )
)
SELECT
    source_row, 'BilledCost' AS column_name, CAST(-credit_amount AS VARCHAR) AS value,
    'is all that credits pay of a usage of ' || usage_cost || ' on ' || strftime(day, '%Y-%m-%d') || '; the day before they paid '
        || credit_before || ' of ' || usage_before AS message
FROM beside
-- As products, since a ratio of decimals is a float; days beyond any bill are too large for them and NULL.
WHERE TRY(2 * (credit_before * usage_cost - credit_amount * usage_before) >= usage_before * usage_cost)
