-- Purpose: who held what, hour by hour.
-- Grain: none
-- Reads: held_hour

SELECT $period AS period, hour_at(hour_number) AS hour_start, *
FROM held_hour
