-- Purpose: who waited for GPUs, per pool, team and hour.
-- Grain: pool, team, hour_number
-- Reads: demand

WITH clipped AS (
    SELECT
        pool, team, gpus, greatest(seconds_of(waited_from), seconds_of($period_start)) AS from_s,
        least(seconds_of(waited_to), seconds_of($period_end)) AS to_s
    FROM demand
),
cut AS (
    SELECT *, unnest(range(from_s // 3600, (to_s - 1) // 3600 + 1)) AS hour_number FROM clipped WHERE from_s < to_s
)
SELECT
    pool, team, hour_number,
    CAST(sum(CAST(gpus * 1000000 AS BIGINT)
        * (least(hour_number * 3600 + 3600, to_s) - greatest(hour_number * 3600, from_s))) AS BIGINT)
        AS pending_gpu_microseconds
FROM cut
GROUP BY ALL
