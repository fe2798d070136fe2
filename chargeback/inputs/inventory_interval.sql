-- Rule: a node's time in the inventory ends after it starts.
-- Kind: inventory
-- Reads: staged

SELECT source_row, 'valid_to' AS column_name, strftime(valid_to, '%Y-%m-%dT%H:%M:%SZ') AS value, 'is not after valid_from' AS message
FROM staged
WHERE valid_to <= valid_from
ORDER BY source_row
LIMIT $max_problems
