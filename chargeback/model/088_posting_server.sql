-- Purpose: step 5 of the ledger: a shared model server's cost goes to its tenants' teams by weighted tokens (`serving`); an
--   hour without a token to the team that owns the server (`held_idle`: held, measured as unused); what no tenant explains,
--   or no team answers for, stays visible as `unattributed` of the pool.
-- Grain: none
-- Reads: token_cost

SELECT
    'server' AS step, currency, hour_number, 'server:' || server AS from_account,
    CASE WHEN team IS NULL THEN 'pool:' || pool || '/unattributed' ELSE 'team:' || team END AS to_account,
    CASE WHEN team IS NOT NULL THEN CASE kind WHEN 'idle' THEN 'held_idle' ELSE 'serving' END END AS category,
    team, pool, gpu_model, CASE WHEN team IS NOT NULL THEN CASE kind WHEN 'idle' THEN 'gpu_bound' ELSE 'tokens' END END AS policy,
    CAST(sum(amount_pico) AS HUGEINT) AS amount_pico, CAST(sum(gpu_microseconds) AS BIGINT) AS gpu_microseconds
FROM token_cost
GROUP BY ALL
HAVING sum(amount_pico) <> 0 OR sum(gpu_microseconds) <> 0
