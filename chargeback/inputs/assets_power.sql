-- Rule: the power of a node is stated by one of its assets at a time, or it would be paid twice. A node may have several assets
--   (what was built in later), not two that start at the same moment.
-- Kind: assets
-- Reads: staged

SELECT b.source_row, 'node' AS column_name, b.node AS value,
       CASE WHEN b.in_service_from = a.in_service_from THEN 'entered service at the same time in row ' || a.source_row
            ELSE 'has its power in row ' || a.source_row || ' too, at the same time' END AS message
FROM staged AS b
JOIN staged AS a
    ON a.node = b.node AND a.cluster IS NOT DISTINCT FROM b.cluster AND a.source_row < b.source_row
WHERE a.in_service_from = b.in_service_from
   OR (
       a.power_price_kwh IS NOT NULL AND b.power_price_kwh IS NOT NULL
       AND coalesce(a.in_service_from < b.in_service_to, true) AND coalesce(b.in_service_from < a.in_service_to, true)
   )
ORDER BY b.source_row
LIMIT $max_problems
