-- Purpose: per pool and hour: what could be held, what was, what waited, and how much of the waiting would have fitted
--   into capacity that stood idle at that very second.
-- Grain: pool, hour_number
-- Reads: pool_segment

SELECT
    pool, from_s // 3600 AS hour_number,
    CAST(sum(capacity * (to_s - from_s)) AS BIGINT) AS capacity_gpu_microseconds,
    CAST(sum(held * (to_s - from_s)) AS BIGINT) AS held_gpu_microseconds,
    CAST(sum(pending * (to_s - from_s)) AS BIGINT) AS pending_gpu_microseconds,
    CAST(sum(least(greatest(capacity - held, 0), pending) * (to_s - from_s)) AS BIGINT) AS pending_while_idle_gpu_microseconds
FROM pool_segment
GROUP BY ALL
