-- Purpose: the fleet hour by hour: what could be held, what was, what stood idle, what waited, and how much of the waiting
--   would have fitted into GPUs that stood idle at that very second.
-- Grain: pool, hour_start
-- Scope: fleet
-- Reads: queue_hour

SELECT
    pool, hour_start, timezone($zone, hour_start) AS local_start, capacity_gpu_microseconds, held_gpu_microseconds,
    capacity_gpu_microseconds - held_gpu_microseconds AS idle_gpu_microseconds, pending_gpu_microseconds,
    pending_while_idle_gpu_microseconds
FROM lake.queue_hour
WHERE period = $period
ORDER BY pool, hour_start
