-- Purpose: what each shared model server cost, hour by hour: the GPUs that it held, at their price, by the team that owns it.
-- Grain: server, owner, currency, hour_number, pool, gpu_model
-- Reads: posting_node, posting_capacity

SELECT
    server, owner, currency, hour_number, pool, gpu_model, CAST(sum(amount_pico) AS HUGEINT) AS cost_pico,
    CAST(sum(gpu_microseconds) AS BIGINT) AS gpu_microseconds
FROM (FROM posting_node UNION ALL BY NAME FROM posting_capacity)
WHERE server IS NOT NULL
GROUP BY ALL
