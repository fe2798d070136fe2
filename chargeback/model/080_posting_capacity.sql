-- Purpose: capacity that no holding took by node goes to those who held GPUs of the pool without saying where (quotas of
--   a scheduler, virtual clusters), at the average price of that hour's free capacity; the rest is idle.
--   Same exact split as on a node. In a pool whose nodes are billed in several currencies, a holder takes the same share of
--   each, and the GPU time is split as the free capacity is. Free capacity of zero or less with pool holders cannot price them: all of it is idle
--   cost, and the holders appear in the gaps.
-- Grain: none
-- Reads: posting_node, held_hour

WITH offered AS (
    SELECT
        currency, pool, hour_number, sum(amount_pico) AS cost_pico, CAST(sum(gpu_microseconds) AS BIGINT) AS free,
        CASE WHEN count(DISTINCT gpu_model) = 1 AND count(gpu_model) = count(*) THEN any_value(gpu_model) END AS gpu_model,
        CAST(sum(sum(gpu_microseconds)) OVER (PARTITION BY pool, hour_number) AS HUGEINT) AS pool_free
    FROM posting_node
    WHERE to_account = 'pool:' || pool || '/capacity'
    GROUP BY currency, pool, hour_number
),
holder AS (
    SELECT pool, hour_number, server, team, CAST(sum(held_gpu_microseconds) AS BIGINT) AS held
    FROM held_hour
    WHERE node IS NULL
    GROUP BY ALL
),
laid AS (
    SELECT *, sum(held) OVER (PARTITION BY pool, hour_number ORDER BY server NULLS FIRST, team NULLS LAST) AS held_to FROM holder
),
paid AS (
    SELECT
        o.*, l.server, CASE WHEN l.server IS NOT NULL THEN l.team END AS owner,
        CASE WHEN l.server IS NULL THEN l.team END AS team,
        split_of(o.cost_pico, l.held_to, o.pool_free) - split_of(o.cost_pico, l.held_to - l.held, o.pool_free) AS amount_pico,
        CAST(split_of(CAST(o.free AS HUGEINT), l.held_to, o.pool_free)
            - split_of(CAST(o.free AS HUGEINT), l.held_to - l.held, o.pool_free) AS BIGINT) AS held
    FROM offered AS o
    JOIN laid AS l USING (pool, hour_number)
    WHERE o.pool_free > 0
),
paid_sum AS (
    SELECT currency, pool, hour_number, sum(amount_pico) AS amount_pico, sum(held) AS held FROM paid GROUP BY ALL
),
rest AS (
    SELECT o.*, o.cost_pico - coalesce(p.amount_pico, 0) AS rest_pico, o.free - coalesce(p.held, 0) AS rest_held
    FROM offered AS o
    LEFT JOIN paid_sum AS p USING (currency, pool, hour_number)
)
SELECT
    'capacity' AS step, currency, hour_number, 'pool:' || pool || '/capacity' AS from_account,
    CASE WHEN server IS NOT NULL THEN 'server:' || server
         WHEN team IS NULL THEN 'pool:' || pool || '/unattributed' ELSE 'team:' || team END AS to_account,
    CASE WHEN team IS NOT NULL THEN 'held' END AS category, team, pool, gpu_model,
    CASE WHEN team IS NOT NULL THEN 'gpu_bound' END AS policy, server, owner, amount_pico, held AS gpu_microseconds
FROM paid
UNION ALL BY NAME
SELECT
    'capacity' AS step, currency, hour_number, 'pool:' || pool || '/capacity' AS from_account,
    'pool:' || pool || '/idle' AS to_account, NULL AS category, NULL AS team, pool, gpu_model, NULL AS policy,
    rest_pico AS amount_pico, rest_held AS gpu_microseconds
FROM rest
WHERE rest_pico <> 0 OR rest_held <> 0
