-- Rule: a device sits in one place at any time, over all device files.
-- Kind: devices
-- Reads: staged, device

WITH stated AS (
    SELECT device, valid_from, valid_to, source_row, $file AS source_file FROM staged
    UNION ALL BY NAME
    SELECT device, valid_from, valid_to, source_row, source_file FROM device WHERE source_file <> $file
)
SELECT s.source_row, 'valid_from' AS column_name, s.device AS value,
       'overlaps ' || min(o.source_file || ' row ' || o.source_row) || ': one device, two places at the same time' AS message
FROM staged AS s
JOIN stated AS o
    ON o.device = s.device AND (o.source_file <> $file OR o.source_row < s.source_row)
   AND s.valid_from < coalesce(o.valid_to, 'infinity'::TIMESTAMPTZ)
   AND o.valid_from < coalesce(s.valid_to, 'infinity'::TIMESTAMPTZ)
GROUP BY s.source_row, s.device
ORDER BY s.source_row
LIMIT $max_problems
