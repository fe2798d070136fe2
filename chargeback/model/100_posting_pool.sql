-- Purpose: step 4 of the ledger: each pool's cost goes to teams by the period's weights, hour by hour, so that any view by
--   time sums to the same total. Money and GPU time are split alike; each team gets F(end) - F(start) of
--   F(t) = amount * t // total weight with teams laid end to end by name.
-- Grain: none
-- Reads: posting_charge, posting_invoice, posting_node, posting_capacity, posting_server, pool_weight

WITH inflow AS (
    SELECT
        currency, pool, split_part(to_account, '/', -1) AS kind, to_account AS account, hour_number, gpu_model,
        sum(amount_pico) AS amount_pico, sum(gpu_microseconds) AS gpu_microseconds
    FROM (
        FROM posting_charge SELECT currency, pool, to_account, hour_number, gpu_model, amount_pico, 0 AS gpu_microseconds
        UNION ALL BY NAME
        FROM posting_invoice SELECT currency, pool, to_account, hour_number, NULL AS gpu_model, amount_pico, 0 AS gpu_microseconds
        UNION ALL BY NAME
        FROM posting_node SELECT currency, pool, to_account, hour_number, gpu_model, amount_pico, gpu_microseconds
        UNION ALL BY NAME
        FROM posting_capacity SELECT currency, pool, to_account, hour_number, gpu_model, amount_pico, gpu_microseconds
        UNION ALL BY NAME
        FROM posting_server SELECT currency, pool, to_account, hour_number, gpu_model, amount_pico, gpu_microseconds
    )
    WHERE starts_with(to_account, 'pool:') AND NOT ends_with(to_account, '/capacity')
    GROUP BY ALL
),
laid AS (
    SELECT
        *, CAST(weight AS HUGEINT) AS w,
        CAST(sum(weight) OVER (PARTITION BY currency, pool, kind ORDER BY team) AS HUGEINT) AS w_to,
        CAST(sum(weight) OVER (PARTITION BY currency, pool, kind) AS HUGEINT) AS w_all
    FROM pool_weight
)
SELECT
    'pool' AS step, i.currency, i.hour_number, i.account AS from_account, 'team:' || l.team AS to_account,
    i.kind AS category, l.team, i.pool, i.gpu_model, l.policy,
    split_of(i.amount_pico, l.w_to, l.w_all) - split_of(i.amount_pico, l.w_to - l.w, l.w_all) AS amount_pico,
    CAST(split_of(i.gpu_microseconds, l.w_to, l.w_all) - split_of(i.gpu_microseconds, l.w_to - l.w, l.w_all) AS BIGINT)
        AS gpu_microseconds
FROM inflow AS i
JOIN laid AS l USING (currency, pool, kind)
