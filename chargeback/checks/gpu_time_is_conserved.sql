-- Check: GPU time that was paid for is held by someone or idle, never both and never lost.
-- Invariant: 4
-- Tier: always
-- Reads: posting, node_hour_cost

WITH billed AS (
    SELECT currency, sum(capacity_gpu_microseconds) FILTER (WHERE carries_gpu_time) AS billed FROM node_hour_cost GROUP BY ALL
),
shared AS (
    SELECT currency, sum(gpu_microseconds) AS shared FROM posting WHERE starts_with(to_account, 'team:') GROUP BY ALL
)
SELECT currency, billed, shared
FROM billed
FULL JOIN shared USING (currency)
WHERE coalesce(billed, 0) <> coalesce(shared, 0)
