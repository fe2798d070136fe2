-- Purpose: the stretches in which a pool in use was held by nobody at all, as they are known: from when, to when, how much.
-- Grain: pool, stopped_from
-- Scope: fleet
-- Reads: pool_stop

SELECT
    pool, stopped_from, stopped_to, timezone($zone, stopped_from) AS local_from, timezone($zone, stopped_to) AS local_to,
    gpus_held_before, idle_gpu_microseconds
FROM lake.pool_stop
WHERE period = $period
ORDER BY stopped_from, pool
