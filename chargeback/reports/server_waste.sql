-- Purpose: what part of the servers' cost came to nothing, by class, for the teams that own them; a class that is not listed
--   is unknown. `hours` are those in which it is known; where it is not known in some hour, neither is the sum, and `reason`
--   says why. `events` are of the server, whoever owns it.
-- Grain: server, team, currency, class
-- Scope: team
-- Reads: server_waste

SELECT
    server, team, currency, class, count(amount) AS hours,
    CASE WHEN count(amount) = count(*) THEN CAST(sum(gpu_microseconds) AS BIGINT) END AS gpu_microseconds,
    CASE WHEN count(amount) = count(*) THEN CAST(sum(amount) AS DECIMAL(38, 12)) END AS amount,
    CAST(sum(events) AS BIGINT) AS events, max(reason) AS reason
FROM lake.server_waste
WHERE period = $period AND ($all_teams OR list_contains($teams, team))
GROUP BY ALL
ORDER BY currency, server, team NULLS LAST, class
