-- Rule: a quota ends after it starts, and one file states a team's quota in a pool once at any time.
-- Kind: quotas
-- Reads: staged

WITH ordered AS (
    SELECT
        *, max(coalesce(valid_to, 'infinity'::TIMESTAMPTZ)) OVER (
            PARTITION BY pool, team ORDER BY valid_from, source_row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS taken_until
    FROM staged
)
SELECT source_row, 'valid_to' AS column_name, strftime(valid_to, '%Y-%m-%dT%H:%M:%SZ') AS value, 'is not after valid_from' AS message
FROM staged WHERE valid_to <= valid_from
UNION ALL
SELECT source_row, 'valid_from', team, 'has another quota in this pool at the same time'
FROM ordered WHERE valid_from < taken_until
ORDER BY source_row
LIMIT $max_problems
