-- Identity: I1
-- Severity: warn
-- Purpose: ListCost and ContractedCost are their unit price times PricingQuantity, except in corrections. Savings are computed
--   from them, and no team's cost; real Azure exports break this where a price is for a block of units, so it refuses nothing.
--   Beside the 0.00001 that Azure documents, the product may be off by what is lost when a unit price is kept with 12 decimals.
-- Source: FOCUS 1.2 ListUnitPrice, ContractedUnitPrice
-- Reads: staged_charge

WITH priced AS (
    SELECT source_row, 'ListCost' AS column_name, list_cost AS cost, list_unit_price AS price, pricing_quantity AS quantity
    FROM staged_charge
    WHERE lower(coalesce(charge_class, '')) <> 'correction' AND NOT coalesce(x_is_split_row, false)
    UNION ALL
    SELECT source_row, 'ContractedCost', contracted_cost, contracted_unit_price, pricing_quantity
    FROM staged_charge
    WHERE lower(coalesce(charge_class, '')) <> 'correction' AND NOT coalesce(x_is_split_row, false)
)
SELECT
    source_row, column_name, CAST(cost AS VARCHAR) AS value,
    'is not its unit price ' || price || ' times PricingQuantity ' || quantity AS message
FROM priced
-- A product that leaves DECIMAL(38, 24) is NULL, and no cost comes near it.
WHERE cost IS NOT NULL AND price IS NOT NULL AND quantity IS NOT NULL
  AND coalesce(TRY(abs(price * quantity - cost) > 0.00001 + abs(quantity) * 0.000000000001), true)
