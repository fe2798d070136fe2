-- Purpose: what all charges up to the period's end put into prepaid accounts and took out of them. A charge whose billed
--   and effective cost differ puts what is billed in and takes what is effective out (as step posting_charge does).
--   What was paid ahead is apart from it: charges that are no usage and have no effective cost of their own.
-- Grain: issuer, currency, commitment, is_of_period
-- Reads: charge

WITH differing AS (
    SELECT
        invoice_issuer AS issuer, billing_currency AS currency, billed_cost, effective_cost,
        coalesce(commitment_discount_id, capacity_reservation_id, 'unassigned') AS commitment,
        billing_period_start >= $period_start AS is_of_period,
        charge_kind(charge_category, charge_class, commitment_discount_status, capacity_reservation_status) AS kind,
        effective_cost = 0 AND lower(charge_category) <> 'usage' AS is_ahead,
        lower(coalesce(charge_frequency, '')) = 'recurring' AS is_recurring
    FROM charge
    WHERE billed_cost <> effective_cost AND billing_period_start < $period_end AND NOT coalesce(x_is_split_row, false)
)
SELECT
    issuer, currency, commitment, is_of_period,
    sum(billed_cost) AS billed_amount,
    coalesce(sum(effective_cost) FILTER (WHERE kind <> 'unused_commitment'), 0) AS used_amount,
    coalesce(sum(effective_cost) FILTER (WHERE kind = 'unused_commitment'), 0) AS unused_amount,
    coalesce(sum(billed_cost) FILTER (WHERE is_ahead AND NOT is_recurring), 0) AS once_amount,
    coalesce(sum(billed_cost) FILTER (WHERE is_ahead AND is_recurring), 0) AS recurring_amount,
    count(*) FILTER (WHERE effective_cost <> 0) AS consuming_count
FROM differing
GROUP BY ALL
