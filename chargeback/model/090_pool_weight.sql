-- Purpose: how each pool's cost of the period is shared: one weight per team, decided once per period.
--   proportional: the team's direct cost in the pool (of all pools, where the pool is an issuer's: tax, overhead, credit);
--   even: 1 for every team that held anything there; quota: the team's quota that it did not hold, priced hour by hour;
--   central: the central team. Where a policy finds no weight at all, the central team pays: never 0/0.
-- Grain: currency, pool, kind, team
-- Reads: posting_charge, posting_invoice, posting_node, posting_capacity, posting_server, node_hour_cost, held_hour, quota_hour, policy, setting

WITH direct AS (
    SELECT currency, pool, team, amount_pico
    FROM (
        FROM posting_node SELECT currency, pool, team, amount_pico
        UNION ALL FROM posting_capacity SELECT currency, pool, team, amount_pico
        UNION ALL FROM posting_server SELECT currency, pool, team, amount_pico
    )
    WHERE team IS NOT NULL
),
inflow AS (
    SELECT currency, pool, split_part(to_account, '/', -1) AS kind
    FROM (
        FROM posting_charge SELECT currency, pool, to_account
        UNION ALL FROM posting_invoice SELECT currency, pool, to_account
        UNION ALL FROM posting_node SELECT currency, pool, to_account
        UNION ALL FROM posting_capacity SELECT currency, pool, to_account
        UNION ALL FROM posting_server SELECT currency, pool, to_account
    )
    WHERE starts_with(to_account, 'pool:') AND NOT ends_with(to_account, '/capacity')
    GROUP BY ALL
),
wanted AS (
    SELECT
        i.currency, i.pool, i.kind, p.policy,
        i.pool IN (SELECT pool FROM node_hour_cost) AS is_node_pool
    FROM inflow AS i
    JOIN policy AS p USING (kind)
),
proportional AS (
    SELECT w.currency, w.pool, w.kind, d.team, CAST(greatest(sum(d.amount_pico), 0) AS DECIMAL(38, 0)) AS weight
    FROM wanted AS w
    JOIN direct AS d ON d.currency = w.currency AND (d.pool = w.pool OR NOT w.is_node_pool)
    WHERE w.policy = 'proportional'
    GROUP BY ALL
),
even AS (
    SELECT DISTINCT w.currency, w.pool, w.kind, h.team, CAST(1 AS DECIMAL(38, 0)) AS weight
    FROM wanted AS w
    JOIN held_hour AS h ON (h.pool = w.pool OR NOT w.is_node_pool) AND h.team IS NOT NULL AND h.held_gpu_microseconds > 0
       AND h.hour_number >= seconds_of($period_start) // 3600 AND h.hour_number < seconds_of($period_end) // 3600
    WHERE w.policy = 'even'
),
pool_hour AS (
    SELECT currency, pool, hour_number, sum(cost_pico) AS cost_pico, sum(capacity_gpu_microseconds) AS capacity
    FROM node_hour_cost GROUP BY ALL
),
held AS (
    SELECT pool, team, hour_number, sum(held_gpu_microseconds) AS held_gpu_microseconds FROM held_hour GROUP BY ALL
),
quota AS (
    SELECT
        w.currency, w.pool, w.kind, q.team,
        CAST(sum(greatest(p.cost_pico, 0) * greatest(q.quota_gpu_microseconds - coalesce(h.held_gpu_microseconds, 0), 0)
            // p.capacity) AS DECIMAL(38, 0)) AS weight
    FROM wanted AS w
    JOIN quota_hour AS q ON q.pool = w.pool OR NOT w.is_node_pool
    JOIN pool_hour AS p ON p.currency = w.currency AND p.pool = q.pool AND p.hour_number = q.hour_number AND p.capacity > 0
    LEFT JOIN held AS h ON h.pool = q.pool AND h.team = q.team AND h.hour_number = q.hour_number
    WHERE w.policy = 'quota'
    GROUP BY ALL
),
found AS (
    SELECT * FROM (FROM proportional UNION ALL BY NAME FROM even UNION ALL BY NAME FROM quota) WHERE weight > 0
),
fallback AS (
    SELECT
        w.currency, w.pool, w.kind, s.central_team AS team, CAST(1 AS DECIMAL(38, 0)) AS weight,
        CASE WHEN w.policy = 'central' THEN 'central' ELSE 'central: no ' || w.policy || ' weight' END AS policy
    FROM wanted AS w
    ANTI JOIN found AS f USING (currency, pool, kind)
    CROSS JOIN setting AS s
)
SELECT currency, pool, kind, team, policy, weight
FROM (FROM found JOIN wanted USING (currency, pool, kind) SELECT currency, pool, kind, team, policy, weight)
UNION ALL BY NAME
SELECT currency, pool, kind, team, policy, weight FROM fallback
