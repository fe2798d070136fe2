-- Purpose: resources that only one side knows: billed but no node of the inventory, with what they cost; nodes that no
--   charge pays for, with what their GPU time would have cost at the period's average of their pool, else of their model.
--   That is an estimate, in each currency that the pool or model was billed in, and NULL where nothing was.
-- Grain: none
-- Scope: finance
-- Reads: gap, node_hour, posting

WITH node_cost AS (
    SELECT to_account AS account, currency, sum(amount) AS cost
    FROM lake.posting
    WHERE period = $period AND step = 'charge' AND starts_with(to_account, 'node:')
    GROUP BY ALL
),
node AS (
    SELECT
        cluster || '/' || node AS subject, any_value(pool) AS pool, any_value(gpu_model) AS gpu_model,
        'node:' || replace(replace(cluster, '%', '%25'), '/', '%2F') || '/' || node AS account,
        sum(capacity_gpu_microseconds) AS capacity
    FROM lake.node_hour WHERE period = $period GROUP BY cluster, node
),
priced AS (
    SELECT n.*, c.currency, c.cost FROM node AS n JOIN node_cost AS c USING (account)
),
pool_price AS (
    SELECT pool, currency, sum(cost) AS cost, sum(capacity) AS capacity FROM priced GROUP BY ALL HAVING sum(capacity) > 0
),
model_price AS (
    SELECT gpu_model, currency, sum(cost) AS cost, sum(capacity) AS capacity
    FROM priced WHERE gpu_model IS NOT NULL GROUP BY ALL HAVING sum(capacity) > 0
),
price AS (
    SELECT n.subject, p.currency, p.cost, p.capacity FROM node AS n JOIN pool_price AS p USING (pool)
    UNION ALL
    SELECT n.subject, m.currency, m.cost, m.capacity FROM node AS n JOIN model_price AS m USING (gpu_model)
    WHERE n.pool NOT IN (SELECT pool FROM pool_price)
)
SELECT
    'billed, no node' AS side, subject, gap_from, gap_to, CAST(NULL AS BIGINT) AS gpu_microseconds, amount, currency, false AS is_estimate, reason
FROM lake.gap
WHERE period = $period AND kind = 'unmatched_charge'
UNION ALL
SELECT
    'node, not billed' AS side, g.subject, g.gap_from, g.gap_to, g.gpu_microseconds,
    CAST(CAST(CAST(p.cost * 1000000 AS HUGEINT) * g.gpu_microseconds // CAST(p.capacity AS HUGEINT) AS DECIMAL(38, 0)) * 0.000001 AS DECIMAL(38, 12))
        AS amount, p.currency, true AS is_estimate, g.reason
FROM lake.gap AS g
LEFT JOIN price AS p USING (subject)
WHERE g.period = $period AND g.kind = 'unpriced_node'
ORDER BY side, amount DESC NULLS LAST, subject
