-- Purpose: each team's statement by category: what it held itself and its share of what nobody held.
-- Grain: team, category, currency
-- Scope: team
-- Reads: statement_line

SELECT
    team, any_value(cost_centre) AS cost_centre, category, currency,
    CAST(sum(gpu_microseconds) AS BIGINT) AS gpu_microseconds,
    CAST(sum(amount) AS DECIMAL(18, 3)) AS amount
FROM lake.statement_line
WHERE period = $period AND ($all_teams OR list_contains($teams, team))
GROUP BY team, category, currency
ORDER BY currency, team, category
