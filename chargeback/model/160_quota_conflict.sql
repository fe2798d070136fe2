-- Purpose: where a witness quota file says something else than the one of record, per pool, team and stretch of time.
--   A team that one of the files does not name at a time has no quota there: 0 is then what that file says.
-- Grain: pool, team, conflict_from_s, other_source
-- Reads: quota, quota_source

WITH span AS (
    SELECT
        q.pool, q.team, q.source_file AS source, s.decides, CAST(q.gpus * 1000000 AS BIGINT) AS gpus,
        greatest(seconds_of(q.valid_from), seconds_of($period_start)) AS from_s,
        least(coalesce(seconds_of(q.valid_to), seconds_of($period_end)), seconds_of($period_end)) AS to_s
    FROM quota AS q
    JOIN quota_source AS s ON s.source = q.source_file
),
clipped AS (
    SELECT * FROM span WHERE from_s < to_s
),
-- A witness speaks only for the time that it covers at all.
covered AS (
    SELECT source, min(from_s) AS from_s, max(to_s) AS to_s FROM clipped WHERE NOT decides GROUP BY ALL
),
change AS (
    SELECT w.source AS other_source, c.pool, c.team, c.decides, u.at_s, u.gpus
    FROM covered AS w
    JOIN clipped AS c ON (c.decides OR c.source = w.source) AND c.from_s < w.to_s AND c.to_s > w.from_s
    CROSS JOIN LATERAL (
        SELECT greatest(c.from_s, w.from_s) AS at_s, c.gpus AS gpus
        UNION ALL SELECT least(c.to_s, w.to_s) AS at_s, -c.gpus AS gpus
    ) AS u
),
step AS (
    SELECT
        other_source, pool, team, at_s,
        sum(gpus) FILTER (WHERE decides) AS record_change, sum(gpus) FILTER (WHERE NOT decides) AS other_change
    FROM change GROUP BY ALL
),
level AS (
    SELECT
        other_source, pool, team, at_s AS from_s, lead(at_s) OVER line AS to_s,
        sum(coalesce(record_change, 0)) OVER line AS gpus, sum(coalesce(other_change, 0)) OVER line AS other_gpus
    FROM step
    WINDOW line AS (PARTITION BY other_source, pool, team ORDER BY at_s)
),
-- Neighbouring stretches that say the same are one conflict.
marked AS (
    SELECT *, lag(to_s) OVER line IS DISTINCT FROM from_s OR lag(gpus) OVER line <> gpus OR lag(other_gpus) OVER line <> other_gpus AS starts
    FROM level
    WHERE to_s IS NOT NULL AND gpus <> other_gpus
    WINDOW line AS (PARTITION BY other_source, pool, team ORDER BY from_s)
),
numbered AS (
    SELECT *, sum(starts::INT) OVER (PARTITION BY other_source, pool, team ORDER BY from_s) AS conflict_number FROM marked
)
SELECT
    pool, team, min(from_s) AS conflict_from_s, max(to_s) AS conflict_to_s,
    (SELECT source FROM quota_source WHERE decides) AS source, CAST(any_value(gpus) AS BIGINT) AS gpus,
    other_source, CAST(any_value(other_gpus) AS BIGINT) AS other_gpus
FROM numbered
GROUP BY pool, team, other_source, conflict_number
