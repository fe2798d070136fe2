-- Purpose: where a team's money of one day and category came from: the account it left, what that account gave to all teams
--   in that hour, and the share that fell to the team (its GPU time, or its weight of the period).
-- Grain: team, hour_start, from_account, pool, gpu_model, policy
-- Scope: team
-- Reads: posting, pool_weight

WITH of_day AS (
    SELECT *
    FROM lake.posting
    WHERE period = $period AND currency = $currency AND category = $category AND starts_with(to_account, 'team:')
      AND CAST(timezone($zone, hour_start) AS DATE) = $day
),
account AS (
    SELECT
        hour_start, from_account, gpu_model, sum(amount) AS account_amount, sum(gpu_microseconds) AS account_gpu_microseconds
    FROM lake.posting
    WHERE period = $period AND currency = $currency AND CAST(timezone($zone, hour_start) AS DATE) = $day
      AND from_account IN (SELECT from_account FROM of_day)
    GROUP BY ALL
)
SELECT
    d.team, d.hour_start, strftime(timezone($zone, d.hour_start), '%H:%M') AS local_hour, d.step, d.from_account, d.pool,
    d.gpu_model, d.policy,
    CAST(sum(d.gpu_microseconds) AS BIGINT) AS gpu_microseconds,
    CAST(any_value(a.account_gpu_microseconds) AS BIGINT) AS account_gpu_microseconds,
    any_value(w.weight) AS weight, any_value(w.total_weight) AS total_weight,
    CAST(any_value(a.account_amount) AS DECIMAL(38, 12)) AS account_amount,
    CAST(sum(d.amount) AS DECIMAL(38, 12)) AS amount
FROM of_day AS d
JOIN account AS a
    ON a.hour_start = d.hour_start AND a.from_account = d.from_account AND a.gpu_model IS NOT DISTINCT FROM d.gpu_model
LEFT JOIN lake.pool_weight AS w
    ON d.step = 'pool' AND w.period = $period AND w.currency = $currency AND w.pool = d.pool AND w.kind = d.category
   AND w.team = d.team
WHERE $all_teams OR list_contains($teams, d.team)
GROUP BY ALL
ORDER BY d.team, d.hour_start, d.from_account
