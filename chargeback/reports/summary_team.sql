-- Purpose: each team's month on one line: what it held, what it pays for it, for model servers, its share of
--   idle, everything else, the total.
-- Grain: none
-- Scope: team
-- Reads: statement_line

SELECT
    team, currency,
    CAST(coalesce(sum(gpu_microseconds) FILTER (WHERE category IN ('used', 'held_idle', 'held')), 0) AS BIGINT)
        AS held_gpu_microseconds,
    coalesce(sum(amount) FILTER (WHERE category IN ('used', 'held_idle', 'held')), 0) AS held_amount,
    coalesce(sum(amount) FILTER (WHERE category = 'serving'), 0) AS serving_amount,
    coalesce(sum(amount) FILTER (WHERE category = 'idle'), 0) AS idle_amount,
    coalesce(sum(amount) FILTER (WHERE category NOT IN ('used', 'held_idle', 'held', 'serving', 'idle')), 0) AS other_amount,
    sum(amount) AS total_amount
FROM lake.statement_line
WHERE period = $period AND ($all_teams OR list_contains($teams, team))
GROUP BY team, currency
ORDER BY currency, total_amount DESC, team
