-- Check: usage under no commitment or capacity reservation costs what it is billed. Exports that round EffectiveCost break this
--   and would charge teams another total than the invoice's.
-- Invariant: 2
-- Tier: always
-- Reads: charge

SELECT source_file, source_row, resource_id, billed_cost, effective_cost
FROM charge
WHERE billing_period_start >= $period_start AND billing_period_start < $period_end
  AND lower(charge_category) = 'usage' AND lower(coalesce(charge_class, '')) <> 'correction'
  AND commitment_discount_id IS NULL AND capacity_reservation_id IS NULL
  AND billed_cost <> effective_cost
