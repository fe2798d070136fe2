-- Purpose: who waited, hour by hour.
-- Grain: none
-- Reads: pending_hour

SELECT $period AS period, hour_at(hour_number) AS hour_start, *
FROM pending_hour
