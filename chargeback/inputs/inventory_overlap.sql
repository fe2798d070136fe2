-- Rule: a node is described once at any time, over all inventory files.
-- Kind: inventory
-- Reads: staged, node

WITH stated AS (
    SELECT cluster, node, valid_from, valid_to, source_row, $file AS source_file FROM staged
    UNION ALL BY NAME
    SELECT cluster, node, valid_from, valid_to, source_row, source_file FROM node WHERE source_file <> $file
),
paired AS (
    SELECT
        *, max(coalesce(valid_to, 'infinity'::TIMESTAMPTZ)) OVER earlier AS taken_until,
        arg_max(source_row, coalesce(valid_to, 'infinity'::TIMESTAMPTZ)) OVER earlier AS other_row,
        arg_max(source_file, coalesce(valid_to, 'infinity'::TIMESTAMPTZ)) OVER earlier AS other_file
    FROM stated
    WINDOW earlier AS (
        PARTITION BY cluster, node ORDER BY valid_from, source_file, source_row
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)
SELECT
    CASE WHEN source_file = $file THEN source_row ELSE other_row END AS source_row, 'valid_from' AS column_name,
    cluster || '/' || node AS value,
    'overlaps ' || CASE WHEN source_file = $file THEN other_file || ' row ' || other_row ELSE source_file || ' row ' || source_row END
        || ': one node, two descriptions at the same time' AS message
FROM paired
WHERE valid_from < taken_until AND (source_file = $file OR other_file = $file)
ORDER BY source_row
LIMIT $max_problems
