-- Purpose: how each server's hours were divided.
-- Grain: none
-- Reads: server_hour

SELECT $period AS period, hour_at(hour_number) AS hour_start, *
FROM server_hour
