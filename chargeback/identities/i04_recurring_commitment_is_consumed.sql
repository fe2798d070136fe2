-- Identity: I4
-- Severity: info
-- Purpose: a commitment that is paid by recurring fees only is consumed as it is paid: what its used and unused parts cost is
--   what its purchases bill, to the cent. Part of a month differs, and so does any month of one that is paid upfront; the
--   whole term is compared when a period is built.
-- Source: FOCUS 1.2 EffectiveCost
-- Reads: staged_charge

WITH committed AS (
    SELECT
        lower(commitment_discount_id) AS commitment, billing_currency, billing_period_start, min(source_row) AS source_row,
        sum(billed_cost) FILTER (WHERE lower(charge_category) = 'purchase') AS purchased,
        coalesce(sum(effective_cost) FILTER (WHERE lower(charge_category) = 'usage'), 0) AS consumed
    FROM staged_charge
    WHERE commitment_discount_id IS NOT NULL AND NOT coalesce(x_is_split_row, false)
    GROUP BY ALL
    HAVING bool_and(lower(coalesce(charge_frequency, '')) = 'recurring') FILTER (WHERE lower(charge_category) = 'purchase')
)
SELECT
    source_row, 'CommitmentDiscountId' AS column_name, commitment AS value,
    'costs ' || consumed || ' by its used and unused parts and ' || purchased || ' by its purchases' AS message
FROM committed
WHERE abs(consumed - purchased) >= 0.01
