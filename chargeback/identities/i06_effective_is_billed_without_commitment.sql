-- Identity: I6
-- Severity: error
-- Purpose: usage under no commitment, capacity reservation or prepayment costs what it is billed. Exports that round EffectiveCost
--   break this and would charge teams another total than the invoice's. A difference in the last
--   of the 12 kept decimals, or in the 15th digit, is an artefact of floats.
-- Source: FOCUS 1.2 EffectiveCost
-- Reads: staged_charge

SELECT
    source_row, 'EffectiveCost' AS column_name, CAST(effective_cost AS VARCHAR) AS value,
    'differs from BilledCost ' || billed_cost || ' without a commitment' AS message
FROM staged_charge
WHERE lower(charge_category) = 'usage' AND lower(coalesce(charge_class, '')) <> 'correction'
  AND commitment_discount_id IS NULL AND capacity_reservation_id IS NULL
  AND effective_cost <> billed_cost AND abs(effective_cost - billed_cost) > 0.000000000001
  AND coalesce(TRY(abs(effective_cost - billed_cost) * 1000000000000000 > abs(billed_cost)), true)
  AND NOT coalesce(x_is_split_row, false)
