-- Rule: tokens are stated by the whole UTC hour, the grain in which a server's cost is split.
-- Kind: tokens
-- Reads: staged

SELECT source_row, 'hour_start' AS column_name, strftime(hour_start, '%Y-%m-%dT%H:%M:%SZ') AS value,
       'is not the start of a UTC hour' AS message
FROM staged
WHERE date_trunc('hour', hour_start) <> hour_start
ORDER BY source_row
LIMIT $max_problems
