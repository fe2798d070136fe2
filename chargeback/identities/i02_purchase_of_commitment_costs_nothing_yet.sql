-- Identity: I2
-- Severity: error
-- Purpose: a purchase of a commitment or of reserved capacity has an EffectiveCost of 0: its cost comes with the usage that it
--   covers and the part left unused. A subscription that covers nothing later keeps its cost, so not every purchase has 0.
-- Source: FOCUS 1.2 EffectiveCost
-- Reads: staged_charge

SELECT
    source_row, 'EffectiveCost' AS column_name, CAST(effective_cost AS VARCHAR) AS value,
    'is not 0, and the usage that this purchase covers costs it again' AS message
FROM staged_charge
WHERE lower(charge_category) = 'purchase' AND lower(coalesce(charge_class, '')) <> 'correction'
  AND (commitment_discount_id IS NOT NULL OR capacity_reservation_id IS NOT NULL)
  AND effective_cost <> 0
  AND NOT coalesce(x_is_split_row, false)
