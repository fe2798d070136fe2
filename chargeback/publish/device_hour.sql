-- Purpose: what each device did, hour by hour.
-- Grain: none
-- Reads: device_hour

SELECT $period AS period, hour_at(hour_number) AS hour_start, * EXCLUDE (energy_window_ms)
FROM device_hour
