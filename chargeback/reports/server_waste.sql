-- Purpose: what part of the servers' cost came to nothing, by class, for the teams that own them; a class that is not listed
--   is unknown. `hours` are those in which it is known.
-- Grain: server, team, currency, class
-- Scope: team
-- Reads: server_waste

SELECT
    server, team, currency, class, count(*) AS hours, CAST(sum(gpu_microseconds) AS BIGINT) AS gpu_microseconds,
    CAST(sum(amount) AS DECIMAL(38, 12)) AS amount
FROM lake.server_waste
WHERE period = $period AND ($all_teams OR list_contains($teams, team))
GROUP BY ALL
ORDER BY currency, server, team NULLS LAST, class
