-- Purpose: the stops of pools, with times and whole GPUs.
-- Grain: none
-- Reads: pool_stop

SELECT
    $period AS period, to_timestamp(from_s) AS stopped_from, to_timestamp(to_s) AS stopped_to,
    CAST(held_before * 0.000001 AS DECIMAL(18, 6)) AS gpus_held_before, *
FROM pool_stop
