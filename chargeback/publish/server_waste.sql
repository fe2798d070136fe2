-- Purpose: what part of the servers' cost came to nothing, hour by hour.
-- Grain: none
-- Reads: server_waste

SELECT
    $period AS period, hour_at(hour_number) AS hour_start, server, team, currency, class, from_pico(amount_pico) AS amount,
    gpu_microseconds, events, reason
FROM server_waste
