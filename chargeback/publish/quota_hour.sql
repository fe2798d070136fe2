-- Purpose: what was reserved for whom, hour by hour.
-- Grain: none
-- Reads: quota_hour

SELECT $period AS period, hour_at(hour_number) AS hour_start, *
FROM quota_hour
WHERE hour_number >= seconds_of($period_start) // 3600 AND hour_number < seconds_of($period_end) // 3600
