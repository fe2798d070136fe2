-- Purpose: a team's statement lines hour by hour, with the day each hour is shown under: the local date on which it starts.
--   `amount` is in whole minor units and nests: the parts of a line are differences of its rounded running total (the last
--   hour takes what the statement's own rounding added), so hours, days and lines add up to the statement to the cent.
-- Grain: team, category, pool, gpu_model, policy, hour_start
-- Scope: team
-- Reads: posting, statement_line

WITH hourly AS (
    SELECT
        team, category, pool, gpu_model, policy, hour_start, sum(amount) AS exact_amount,
        sum(gpu_microseconds) AS gpu_microseconds
    FROM lake.posting
    WHERE period = $period AND currency = $currency AND starts_with(to_account, 'team:')
      AND ($all_teams OR list_contains($teams, team))
    GROUP BY ALL
),
running AS (
    SELECT
        *, CAST(sum(exact_amount) OVER so_far * 1000000000000 AS HUGEINT) AS pico_to,
        lead(hour_start) OVER so_far IS NULL AS is_last
    FROM hourly
    WINDOW so_far AS (PARTITION BY team, category, pool, gpu_model, policy ORDER BY hour_start)
),
rounded AS (
    SELECT
        r.*,
        CASE WHEN r.is_last THEN CAST(l.amount * 1000000000000 AS HUGEINT) // $minor_unit_pico
             ELSE (2 * r.pico_to + $minor_unit_pico) // (2 * $minor_unit_pico) END AS units_to
    FROM running AS r
    JOIN lake.statement_line AS l
        ON l.period = $period AND l.currency = $currency AND l.team = r.team AND l.category = r.category
       AND l.pool = r.pool AND l.gpu_model IS NOT DISTINCT FROM r.gpu_model AND l.policy IS NOT DISTINCT FROM r.policy
),
parts AS (
    SELECT
        *, units_to - coalesce(lag(units_to) OVER (PARTITION BY team, category, pool, gpu_model, policy ORDER BY hour_start), 0)
            AS units
    FROM rounded
)
SELECT
    team, category, pool, gpu_model, policy, hour_start,
    CAST(timezone($zone, hour_start) AS DATE) AS day,
    strftime(timezone($zone, hour_start), '%Y-%m-%d %H:%M') AS local_hour,
    CAST(gpu_microseconds AS BIGINT) AS gpu_microseconds,
    CAST(CAST(units * $minor_unit_pico AS DECIMAL(26, 0)) * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(18, 3)) AS amount,
    CAST(exact_amount AS DECIMAL(38, 12)) AS exact_amount
FROM parts
ORDER BY team, hour_start, category, pool
