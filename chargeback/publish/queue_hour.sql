-- Purpose: held, idle and waiting GPU time of each pool, hour by hour.
-- Grain: none
-- Reads: queue_hour

SELECT $period AS period, hour_at(hour_number) AS hour_start, *
FROM queue_hour
