-- Rule: a file states a commitment once.
-- Kind: commitments
-- Reads: staged

SELECT max(source_row) AS source_row, 'commitment_id' AS column_name, min(commitment_id) AS value,
       'is stated ' || count(*) || ' times' AS message
FROM staged
GROUP BY lower(commitment_id)
HAVING count(*) > 1
ORDER BY source_row
LIMIT $max_problems
