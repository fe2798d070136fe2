-- Identity: M4
-- Severity: warn
-- Purpose: a cost center is written in one way. Those that differ in letter case only are kept as they are, and a report by them
--   shows two.
-- Source: Azure's schemas of cost and usage details, CostCenter
-- Reads: staged_charge

WITH spelling AS (
    SELECT
        lower(trim(x_cost_center)) AS cost_center, x_cost_center AS written, count(*) AS row_count, min(source_row) AS source_row
    FROM staged_charge WHERE x_cost_center IS NOT NULL GROUP BY ALL
)
SELECT
    source_row, 'CostCenter' AS column_name, written AS value,
    'is also written ' || first(written) OVER (
        PARTITION BY cost_center ORDER BY row_count DESC, written ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS message
FROM spelling
QUALIFY row_number() OVER (PARTITION BY cost_center ORDER BY row_count DESC, written) > 1
