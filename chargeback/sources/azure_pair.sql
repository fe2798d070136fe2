-- Purpose: what each charge of Azure's cost details bills and costs. The datasets are never added up:
--   - a charge of no commitment stands in both and counts once: it is billed what the one says and costs what the other says
--     (which is the same, or identity M1 or I6 finds it). Without amortized cost, where nothing is committed, it costs what
--     it is billed, as a rounding of the invoice always does;
--   - a commitment's purchases and refunds stand in actual cost: they are billed and cost nothing yet;
--   - usage under it, and what of it was not used, costs what amortized cost says and is billed nothing. In actual cost the
--     same usage is free and left out.
--   `missing` says what a delivery lacks.
-- Grain: source_row
-- Reads: azure_line

WITH delivery AS (
    SELECT bool_or(is_amortized) AS has_amortized FROM azure_line
),
numbered AS (
    -- Rows that are alike are paired one by one.
    SELECT
        source_row, is_amortized, cost, type, pair_key,
        row_number() OVER (PARTITION BY is_amortized, pair_key ORDER BY cost, source_row) AS copy_number
    FROM azure_line WHERE NOT is_committed
),
plain AS (
    SELECT
        coalesce(a.source_row, m.source_row) AS source_row, a.source_row IS NOT NULL AS is_billed,
        m.source_row IS NOT NULL AS is_cost, coalesce(a.cost, 0) AS billed_cost, coalesce(m.cost, 0) AS effective_cost,
        coalesce(a.type, m.type) = 'roundingadjustment' AS is_rounding
    FROM (FROM numbered WHERE NOT is_amortized) AS a
    FULL JOIN (FROM numbered WHERE is_amortized) AS m ON a.pair_key = m.pair_key AND a.copy_number = m.copy_number
),
committed AS (
    SELECT
        l.*, d.has_amortized, l.type IN ('purchase', 'refund') AS is_purchase
    FROM azure_line AS l CROSS JOIN delivery AS d
    WHERE l.is_committed
)
SELECT
    source_row, billed_cost,
    CASE WHEN NOT is_cost AND (is_rounding OR NOT has_amortized) THEN billed_cost ELSE effective_cost END AS effective_cost,
    CASE
        WHEN NOT has_amortized OR (is_billed AND (is_cost OR is_rounding)) THEN NULL
        WHEN is_billed THEN 'in actual cost only'
        ELSE 'in amortized cost only'
    END AS missing
FROM plain CROSS JOIN delivery
UNION ALL
SELECT
    source_row, CASE WHEN is_amortized THEN 0 ELSE cost END AS billed_cost,
    CASE WHEN is_amortized THEN cost ELSE 0 END AS effective_cost,
    CASE WHEN NOT has_amortized THEN 'without amortized cost' END AS missing
FROM committed
WHERE is_amortized OR is_purchase OR cost <> 0 OR NOT has_amortized
