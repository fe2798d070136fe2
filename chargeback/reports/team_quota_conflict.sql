-- Purpose: where quota files disagree, team by team: the quota of record and what the other file says.
-- Grain: team, pool, conflict_from, other_source
-- Scope: team
-- Reads: quota_conflict

SELECT
    team, pool, conflict_from, conflict_to, timezone($zone, conflict_from) AS local_from,
    timezone($zone, conflict_to) AS local_to, source, CAST(gpus AS DECIMAL(18, 3)) AS gpus, other_source,
    CAST(other_gpus AS DECIMAL(18, 3)) AS other_gpus
FROM lake.quota_conflict
WHERE period = $period AND ($all_teams OR list_contains($teams, team))
ORDER BY conflict_from, team, pool
