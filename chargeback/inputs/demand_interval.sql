-- Rule: a wait ends after it starts.
-- Kind: demand
-- Reads: staged

SELECT source_row, 'end' AS column_name, strftime(waited_to, '%Y-%m-%dT%H:%M:%SZ') AS value, 'is not after start' AS message
FROM staged
WHERE waited_to <= waited_from
ORDER BY source_row
LIMIT $max_problems
