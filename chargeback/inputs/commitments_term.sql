-- Rule: a commitment's term ends after it starts.
-- Kind: commitments
-- Reads: staged

SELECT source_row, 'term_end' AS column_name, strftime(term_end, '%Y-%m-%dT%H:%M:%SZ') AS value, 'is not after term_start' AS message
FROM staged
WHERE term_end <= term_start
ORDER BY source_row
LIMIT $max_problems
