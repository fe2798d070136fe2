-- Purpose: what was reserved for each team in each hour, from the quota file of record.
--   Where several quota files are loaded, one decides (the configured one, else the first loaded); the others are
--   witnesses whose disagreements are reported and change nothing.
-- Grain: pool, team, hour_number
-- Reads: quota, quota_source, node_hour

WITH bounds AS (
    SELECT min(hour_number) * 3600 AS from_s, (max(hour_number) + 1) * 3600 AS to_s FROM node_hour
),
of_record AS (
    SELECT
        q.pool, q.team, q.gpus, greatest(seconds_of(q.valid_from), b.from_s) AS from_s,
        least(coalesce(seconds_of(q.valid_to), b.to_s), b.to_s) AS to_s
    FROM quota AS q, bounds AS b
    WHERE q.source_file = (SELECT source FROM quota_source WHERE decides)
),
cut AS (
    SELECT *, unnest(range(from_s // 3600, (to_s - 1) // 3600 + 1)) AS hour_number FROM of_record WHERE from_s < to_s
)
SELECT
    pool, team, hour_number,
    CAST(sum(CAST(gpus * 1000000 AS BIGINT)
        * (least(hour_number * 3600 + 3600, to_s) - greatest(hour_number * 3600, from_s))) AS BIGINT)
        AS quota_gpu_microseconds
FROM cut
GROUP BY ALL
