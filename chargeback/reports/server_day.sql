-- Purpose: what each shared model server cost by local day, by the category under which it is paid: `serving` by its tenants,
--   `held_idle` by its owner, `unattributed` by nobody yet. Asked for one team: the team's part of it.
-- Grain: server, category, currency, day
-- Scope: team
-- Reads: token_cost

SELECT
    server, CASE WHEN team IS NULL THEN 'unattributed' WHEN kind = 'idle' THEN 'held_idle' ELSE 'serving' END AS category,
    currency, CAST(timezone($zone, hour_start) AS DATE) AS day, CAST(sum(amount) AS DECIMAL(38, 12)) AS amount
FROM lake.token_cost
WHERE period = $period AND ($all_teams OR list_contains($teams, team))
GROUP BY ALL
ORDER BY currency, server, day, category
