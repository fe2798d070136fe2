-- Purpose: who pays for what nobody held, by name: each pool's policy and how many teams share it.
-- Grain: currency, pool, kind
-- Scope: fleet
-- Reads: pool_weight

SELECT currency, pool, kind, any_value(policy) AS policy, count(*) AS team_count
FROM lake.pool_weight
WHERE period = $period
GROUP BY currency, pool, kind
ORDER BY currency, pool, kind
