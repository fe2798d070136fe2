-- Rule: a holding ends after it starts.
-- Kind: holdings
-- Reads: staged

SELECT source_row, 'end' AS column_name, strftime(held_to, '%Y-%m-%dT%H:%M:%SZ') AS value, 'is not after start' AS message
FROM staged
WHERE held_to <= held_from
ORDER BY source_row
LIMIT $max_problems
