-- Identity: I9
-- Severity: error
-- Purpose: what was split from one charge (same resource, charge period, category and SKU) is that charge: the parts' costs add
--   up to the origin row's, their AllocatedRatios to 1, and each part's ratio is its share of the cost, so that a ratio of a
--   day weighs its hours by their cost. Parts whose sum equals other rows of the resource in that period repeat those.
--   Each part may be off by 0.00001.
-- Source: FOCUS 1.3 AllocatedMethodDetails
-- Reads: staged_charge

WITH part AS (
    SELECT
        *,
        list_sum(
            list_transform(
                TRY(allocated_method_details ->> '$.Elements[*].AllocatedRatio'), lambda text: TRY_CAST(text AS DECIMAL(38, 12))
            )
        ) AS ratio
    FROM staged_charge
    WHERE allocated_method_id IS NOT NULL
),
split AS (
    SELECT
        resource_id, charge_period_start, charge_period_end, charge_category, sku_id, min(source_row) AS source_row,
        count(*) AS part_count, bool_or(coalesce(x_is_split_row, false)) AS has_kept_origin,
        sum(billed_cost) AS billed, sum(effective_cost) AS effective,
        CASE WHEN count(ratio) = count(*) THEN sum(ratio) END AS ratio
    FROM part GROUP BY ALL
),
other AS (
    SELECT
        c.resource_id, c.charge_period_start, c.charge_period_end, c.charge_category, c.sku_id,
        sum(c.billed_cost) AS billed, sum(c.effective_cost) AS effective
    FROM staged_charge AS c
    SEMI JOIN split AS s
        ON c.resource_id IS NOT DISTINCT FROM s.resource_id AND c.charge_period_start = s.charge_period_start
        AND c.charge_period_end = s.charge_period_end
    WHERE c.allocated_method_id IS NULL
    GROUP BY ALL
),
beside AS (
    SELECT
        s.*, o.billed AS origin_billed, o.effective AS origin_effective, part_count * 0.00001 AS tolerance,
        EXISTS (
            FROM other AS r
            WHERE r.resource_id = s.resource_id AND r.charge_period_start = s.charge_period_start
              AND r.charge_period_end = s.charge_period_end AND r.billed = s.billed AND r.effective = s.effective
              AND (r.billed <> 0 OR r.effective <> 0)
        ) AS is_repeated
    FROM split AS s
    LEFT JOIN other AS o
        ON s.resource_id IS NOT DISTINCT FROM o.resource_id AND s.sku_id IS NOT DISTINCT FROM o.sku_id
        AND s.charge_period_start = o.charge_period_start AND s.charge_period_end = o.charge_period_end
        AND s.charge_category = o.charge_category
)
SELECT
    source_row, 'BilledCost' AS column_name, CAST(billed AS VARCHAR) AS value,
    'is the sum of the parts, and their origin row bills ' || origin_billed AS message
FROM beside WHERE has_kept_origin AND abs(billed - origin_billed) > tolerance
UNION ALL
SELECT
    source_row, 'EffectiveCost', CAST(effective AS VARCHAR),
    'is the sum of the parts, and their origin row costs ' || origin_effective
FROM beside WHERE has_kept_origin AND abs(effective - origin_effective) > tolerance
UNION ALL
SELECT source_row, 'BilledCost', CAST(billed AS VARCHAR), 'is the sum of the parts, and other rows of the resource bill it too'
FROM beside WHERE NOT has_kept_origin AND is_repeated
UNION ALL
SELECT source_row, 'AllocatedMethodDetails', CAST(ratio AS VARCHAR), 'is the sum of the AllocatedRatios, which is not 1'
FROM beside WHERE abs(ratio - 1) > tolerance
UNION ALL
SELECT
    p.source_row, 'AllocatedMethodDetails', CAST(p.ratio AS VARCHAR),
    'is not the share that this part''s cost has in its origin''s'
FROM part AS p
JOIN beside AS b
    ON p.resource_id IS NOT DISTINCT FROM b.resource_id AND p.sku_id IS NOT DISTINCT FROM b.sku_id
    AND p.charge_period_start = b.charge_period_start AND p.charge_period_end = b.charge_period_end
    AND p.charge_category = b.charge_category
WHERE abs(b.ratio - 1) <= b.tolerance
  AND abs(p.effective_cost - CAST(p.ratio AS DECIMAL(19, 12)) * b.effective) > 0.00001 * greatest(1, abs(b.effective))
