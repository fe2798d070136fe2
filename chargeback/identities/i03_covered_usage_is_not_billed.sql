-- Identity: I3
-- Severity: error
-- Purpose: usage that a commitment covers whole, or that is its unused part, has a BilledCost of 0: it was billed with the
--   purchase. Usage beyond the commitment is a row of its own.
-- Source: FOCUS 1.2 BilledCost
-- Reads: staged_charge

SELECT
    source_row, 'BilledCost' AS column_name, CAST(billed_cost AS VARCHAR) AS value,
    'is not 0, and the purchase of the commitment that covers this bills it again' AS message
FROM staged_charge
WHERE lower(charge_category) = 'usage' AND lower(coalesce(charge_class, '')) <> 'correction'
  AND commitment_discount_id IS NOT NULL AND commitment_discount_status IS NOT NULL
  AND lower(coalesce(pricing_category, 'committed')) = 'committed'
  AND billed_cost <> 0
  AND NOT coalesce(x_is_split_row, false)
