-- Purpose: a team's GPUs hour by hour: held, reserved for it by quota, and waited for; means over the hour.
-- Grain: team, hour_start
-- Scope: team
-- Reads: held_hour, quota_hour, pending_hour

WITH part AS (
    SELECT period, team, hour_start, held_gpu_microseconds, 0 AS quota_gpu_microseconds, 0 AS pending_gpu_microseconds
    FROM lake.held_hour
    UNION ALL BY NAME
    SELECT period, team, hour_start, quota_gpu_microseconds FROM lake.quota_hour
    UNION ALL BY NAME
    SELECT period, team, hour_start, pending_gpu_microseconds FROM lake.pending_hour
)
SELECT
    team, hour_start, timezone($zone, hour_start) AS local_start,
    CAST(coalesce(sum(held_gpu_microseconds), 0) AS BIGINT) AS held_gpu_microseconds,
    CAST(coalesce(sum(quota_gpu_microseconds), 0) AS BIGINT) AS quota_gpu_microseconds,
    CAST(coalesce(sum(pending_gpu_microseconds), 0) AS BIGINT) AS pending_gpu_microseconds
FROM part
WHERE period = $period AND team IS NOT NULL AND ($all_teams OR list_contains($teams, team))
GROUP BY team, hour_start
ORDER BY team, hour_start
