-- Purpose: which team's GPUs each shared model server held: held by the owner, paid for by the server's tenants.
-- Grain: server, team
-- Scope: team
-- Reads: held_hour

SELECT server, team, CAST(sum(held_gpu_microseconds) AS BIGINT) AS held_gpu_microseconds
FROM lake.held_hour
WHERE period = $period AND server IS NOT NULL AND ($all_teams OR list_contains($teams, team))
GROUP BY ALL
ORDER BY server, team NULLS LAST
