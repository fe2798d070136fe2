-- Purpose: step 2 and 3 of the ledger: a node-hour's cost goes to those who held its GPUs, by their share of its capacity
--   (split policy gpu_bound: the whole node over its GPUs); what nobody held on the node is offered to its pool.
--   Holders are laid end to end on the capacity; each pays F(end) - F(start) of F(t) = cost * t / capacity, so the parts
--   and the rest add up exactly. Held beyond the capacity makes the rest negative: shown, never clamped.
--   What a shared model server held goes to the server's account, with the team that owns the server beside it.
-- Grain: none
-- Reads: node_hour_cost, held_hour

WITH holder AS (
    SELECT cluster, node, hour_number, server, team, CAST(sum(held_gpu_microseconds) AS BIGINT) AS held
    FROM held_hour
    WHERE node IS NOT NULL AND pool IS NOT NULL
    GROUP BY ALL
),
laid AS (
    SELECT
        *, sum(held) OVER (PARTITION BY cluster, node, hour_number ORDER BY server NULLS FIRST, team NULLS LAST) AS held_to
    FROM holder
),
paid AS (
    SELECT
        c.*, l.server, CASE WHEN l.server IS NOT NULL THEN l.team END AS owner,
        CASE WHEN l.server IS NULL THEN l.team END AS team, l.held,
        split_of(c.cost_pico, l.held_to, c.capacity_gpu_microseconds)
            - split_of(c.cost_pico, l.held_to - l.held, c.capacity_gpu_microseconds) AS amount_pico
    FROM node_hour_cost AS c
    JOIN laid AS l USING (cluster, node, hour_number)
    WHERE c.capacity_gpu_microseconds > 0
),
paid_sum AS (
    SELECT cluster, node, hour_number, currency, sum(amount_pico) AS amount_pico, sum(held) AS held
    FROM paid GROUP BY ALL
),
rest AS (
    SELECT
        c.*, c.cost_pico - coalesce(p.amount_pico, 0) AS rest_pico,
        c.capacity_gpu_microseconds - coalesce(p.held, 0) AS rest_held
    FROM node_hour_cost AS c
    LEFT JOIN paid_sum AS p USING (cluster, node, hour_number, currency)
)
SELECT
    'node' AS step, currency, hour_number, node_account(cluster, node) AS from_account,
    CASE WHEN server IS NOT NULL THEN 'server:' || server
         WHEN team IS NULL THEN 'pool:' || pool || '/unattributed' ELSE 'team:' || team END AS to_account,
    CASE WHEN team IS NOT NULL THEN 'held' END AS category, team, pool, gpu_model,
    CASE WHEN team IS NOT NULL THEN 'gpu_bound' END AS policy, server, owner, amount_pico,
    CASE WHEN carries_gpu_time THEN held ELSE 0 END AS gpu_microseconds
FROM paid
UNION ALL BY NAME
SELECT
    'node' AS step, currency, hour_number, node_account(cluster, node) AS from_account,
    -- A node without GPUs (a login or storage node) is overhead of its pool.
    'pool:' || pool || CASE WHEN capacity_gpu_microseconds > 0 THEN '/capacity' ELSE '/overhead' END AS to_account,
    NULL AS category, NULL AS team, pool, gpu_model, NULL AS policy, rest_pico AS amount_pico,
    CASE WHEN carries_gpu_time THEN rest_held ELSE 0 END AS gpu_microseconds
FROM rest
WHERE rest_pico <> 0 OR rest_held <> 0
