-- Purpose: statement lines of other currencies in the reporting currency; one team's when a team is given.
-- Grain: none
-- Scope: team
-- Reads: reporting_line

SELECT
    period, period || '/v' || version AS statement, team, cost_centre, gl_account, category, pool, gpu_model,
    gpu_microseconds, amount, currency, policy, booked_amount, booked_currency, rate, rate_source
FROM lake.reporting_line
WHERE period = $period AND ($all_teams OR list_contains($teams, team))
ORDER BY currency, team, category, pool, gpu_model NULLS FIRST, policy
