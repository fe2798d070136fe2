-- Check: nodes, pools and servers keep nothing: what enters one of these accounts leaves it again, to the last unit.
-- Invariant: 1
-- Tier: always
-- Reads: posting

WITH movement AS (
    SELECT to_account AS account, currency, amount FROM posting
    UNION ALL SELECT from_account AS account, currency, -amount AS amount FROM posting
)
SELECT account, currency, sum(amount) AS left_over
FROM movement
WHERE starts_with(account, 'node:') OR starts_with(account, 'pool:') OR starts_with(account, 'server:')
GROUP BY ALL
HAVING sum(amount) <> 0
