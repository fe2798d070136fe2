-- Purpose: where quota files disagree, fleet-wide: which file decided, and what the two add up to.
-- Grain: pool, conflict_from, conflict_to, other_source
-- Scope: fleet
-- Reads: quota_conflict

SELECT
    pool, conflict_from, conflict_to, timezone($zone, conflict_from) AS local_from, timezone($zone, conflict_to) AS local_to,
    source, other_source, count(DISTINCT team) AS team_count, CAST(sum(gpus) AS DECIMAL(18, 3)) AS gpus,
    CAST(sum(other_gpus) AS DECIMAL(18, 3)) AS other_gpus,
    count(*) FILTER (WHERE other_gpus > 0) AS other_team_count
FROM lake.quota_conflict
WHERE period = $period
GROUP BY ALL
ORDER BY conflict_from, pool, other_source
