-- Purpose: who waited, and whose quota stood unheld meanwhile: GPU time per team over the period.
--   A team's part of the waiting that idle GPUs could have served is its part of all waiting in that pool and hour. Quota
--   counts as unheld while others waited in hours in which another team queued in the same pool.
-- Grain: team, pool
-- Scope: team
-- Reads: held_hour, quota_hour, pending_hour, queue_hour

WITH part AS (
    SELECT
        period, team, pool, hour_start, held_gpu_microseconds AS held, CAST(NULL AS BIGINT) AS quota,
        CAST(NULL AS BIGINT) AS pending
    FROM lake.held_hour
    UNION ALL BY NAME
    SELECT period, team, pool, hour_start, quota_gpu_microseconds AS quota FROM lake.quota_hour
    UNION ALL BY NAME
    SELECT period, team, pool, hour_start, pending_gpu_microseconds AS pending FROM lake.pending_hour
),
hourly AS (
    SELECT
        team, pool, hour_start, coalesce(sum(held), 0) AS held, sum(quota) AS quota, coalesce(sum(pending), 0) AS pending
    FROM part
    WHERE period = $period AND team IS NOT NULL
    GROUP BY ALL
),
beside AS (
    SELECT
        h.*, greatest(coalesce(h.quota, 0) - h.held, 0) AS unheld, greatest(h.held - h.quota, 0) AS over_quota,
        q.pending_gpu_microseconds AS pool_pending, q.pending_while_idle_gpu_microseconds AS pool_pending_while_idle
    FROM hourly AS h
    LEFT JOIN lake.queue_hour AS q ON q.period = $period AND q.pool = h.pool AND q.hour_start = h.hour_start
)
SELECT
    team, pool,
    CAST(sum(held) AS BIGINT) AS held_gpu_microseconds,
    CAST(sum(quota) AS BIGINT) AS quota_gpu_microseconds,
    CAST(CASE WHEN count(quota) > 0 THEN sum(unheld) END AS BIGINT) AS unheld_quota_gpu_microseconds,
    CAST(CASE WHEN count(quota) > 0 THEN sum(coalesce(over_quota, held)) END AS BIGINT) AS over_quota_gpu_microseconds,
    CAST(sum(pending) AS BIGINT) AS pending_gpu_microseconds,
    CAST(sum(CASE WHEN pool_pending > 0
                  THEN CAST(pending AS HUGEINT) * pool_pending_while_idle // pool_pending ELSE 0 END) AS BIGINT)
        AS pending_while_idle_gpu_microseconds,
    CAST(CASE WHEN count(quota) > 0 THEN sum(CASE WHEN pool_pending > pending THEN unheld ELSE 0 END) END AS BIGINT)
        AS unheld_while_others_waited_gpu_microseconds
FROM beside
WHERE $all_teams OR list_contains($teams, team)
GROUP BY team, pool
ORDER BY pending_gpu_microseconds DESC, team, pool
