-- Purpose: what each node-hour cost, per currency, beside what it could hold.
--   A node billed in two currencies carries its GPU time once, in the first by name, so that hours are not doubled.
-- Grain: cluster, node, hour_number, currency
-- Reads: node_hour, posting_charge

WITH cost AS (
    SELECT to_account, hour_number, currency, sum(amount_pico) AS cost_pico
    FROM posting_charge
    WHERE starts_with(to_account, 'node:')
    GROUP BY ALL
)
SELECT
    n.cluster, n.node, n.hour_number, c.currency, n.pool, n.gpu_model, c.cost_pico, n.capacity_gpu_microseconds,
    c.currency = min(c.currency) OVER (PARTITION BY n.cluster, n.node, n.hour_number) AS carries_gpu_time
FROM node_hour AS n
JOIN cost AS c ON c.to_account = node_account(n.cluster, n.node) AND c.hour_number = n.hour_number
