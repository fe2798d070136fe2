-- Identity: I5
-- Severity: warn
-- Purpose: a credit or adjustment of no commitment has one cost: EffectiveCost, and without unit prices ListCost and
--   ContractedCost too, are BilledCost. An EffectiveCost that differs is not used.
-- Source: FOCUS 1.2 EffectiveCost, ListCost, ContractedCost; Azure documents differences below 0.00001
-- Reads: staged_charge

WITH compared AS (
    SELECT
        source_row, billed_cost, coalesce(x_stated_effective_cost, effective_cost) AS effective_cost,
        CASE WHEN contracted_unit_price IS NULL THEN contracted_cost END AS contracted_cost,
        CASE WHEN list_unit_price IS NULL THEN list_cost END AS list_cost
    FROM staged_charge
    WHERE lower(charge_category) IN ('credit', 'adjustment')
      AND commitment_discount_id IS NULL AND capacity_reservation_id IS NULL
      AND NOT coalesce(x_is_split_row, false)
),
first_wrong AS (
    SELECT
        source_row, billed_cost,
        CASE
            WHEN abs(effective_cost - billed_cost) >= 0.00001 THEN {'name': 'EffectiveCost', 'cost': effective_cost}
            WHEN abs(contracted_cost - billed_cost) >= 0.00001 THEN {'name': 'ContractedCost', 'cost': contracted_cost}
            WHEN abs(list_cost - billed_cost) >= 0.00001 THEN {'name': 'ListCost', 'cost': list_cost}
        END AS wrong
    FROM compared
)
SELECT
    source_row, wrong.name AS column_name, CAST(wrong.cost AS VARCHAR) AS value,
    'differs from BilledCost ' || billed_cost
        || CASE WHEN wrong.name = 'EffectiveCost' THEN ', which is what it costs' ELSE '' END AS message
FROM first_wrong
WHERE wrong IS NOT NULL
