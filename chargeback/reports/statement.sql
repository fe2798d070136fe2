-- Purpose: the published statement of a period, as finance books it; one team's when a team is given.
-- Grain: none
-- Scope: team
-- Reads: statement_line

SELECT
    period, period || '/v' || version AS statement, team, cost_centre, gl_account, category, pool, gpu_model,
    gpu_microseconds, amount, currency, policy, exact_amount
FROM lake.statement_line
WHERE period = $period AND ($all_teams OR list_contains($teams, team))
ORDER BY currency, team, category, pool, gpu_model NULLS FIRST, policy
