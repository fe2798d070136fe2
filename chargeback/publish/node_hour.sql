-- Purpose: capacity per node and hour of the period itself; boundary hours belong to its neighbours.
-- Grain: none
-- Reads: node_hour

SELECT $period AS period, hour_at(hour_number) AS hour_start, *
FROM node_hour
WHERE hour_number >= seconds_of($period_start) // 3600 AND hour_number < seconds_of($period_end) // 3600
