-- Purpose: the moments when a pool in use was held by nobody at all: a drop to zero from at least half of its usual
--   level, of 15 minutes or more, in a pool of 16 GPUs or more. An outage or a maintenance window looks like this; what
--   it was is not known from holdings, so it is shown as what it is and changes no one's cost.
-- Grain: pool, from_s
-- Reads: pool_segment

WITH usual AS (
    SELECT pool, sum(CAST(held AS HUGEINT) * (to_s - from_s)) // sum(to_s - from_s) AS mean_held
    FROM pool_segment GROUP BY ALL
),
run AS (
    SELECT
        *, lag(held) OVER line AS held_before,
        sum((held <> 0)::INT) OVER line AS run_number
    FROM pool_segment
    WINDOW line AS (PARTITION BY pool ORDER BY from_s)
),
stop AS (
    SELECT
        pool, run_number, min(from_s) AS from_s, max(to_s) AS to_s, arg_min(held_before, from_s) AS held_before,
        CAST(sum(capacity * (to_s - from_s)) AS BIGINT) AS idle_gpu_microseconds, max(capacity) AS capacity
    FROM run
    WHERE held = 0 AND capacity > 0
    GROUP BY ALL
)
SELECT s.pool, s.from_s, s.to_s, s.held_before, s.idle_gpu_microseconds
FROM stop AS s
JOIN usual AS u USING (pool)
WHERE s.to_s - s.from_s >= 900 AND s.capacity >= 16000000 AND s.held_before * 2 >= u.mean_held AND u.mean_held > 0
