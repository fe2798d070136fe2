-- Purpose: one team's lines with what lies behind each: the account its money came from, and the weight it was shared by.
-- Grain: none
-- Scope: team
-- Reads: statement_line, pool_weight, posting

WITH inflow AS (
    SELECT currency, pool, split_part(to_account, '/', -1) AS kind, sum(amount) AS pool_amount, sum(gpu_microseconds) AS pool_gpu_microseconds
    FROM lake.posting
    WHERE period = $period AND starts_with(to_account, 'pool:')
    GROUP BY ALL
)
SELECT
    l.category, l.pool, l.gpu_model, l.policy, l.currency, l.amount, l.exact_amount, l.gpu_microseconds,
    i.pool_amount, i.pool_gpu_microseconds, w.weight, w.total_weight
FROM lake.statement_line AS l
LEFT JOIN inflow AS i ON i.currency = l.currency AND i.pool = l.pool AND i.kind = l.category
LEFT JOIN lake.pool_weight AS w
    ON w.period = l.period AND w.currency = l.currency AND w.pool = l.pool AND w.kind = l.category AND w.team = l.team
WHERE l.period = $period AND ($all_teams OR list_contains($teams, l.team))
ORDER BY l.currency, l.category, l.pool, l.gpu_model NULLS FIRST
