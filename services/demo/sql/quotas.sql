-- Purpose: each virtual cluster's quota as the minute file has it: constant over May.
-- Grain: none
-- Reads: source

SELECT
    'earth-v100' AS pool, vc AS team, gpus_capacity AS gpus, strftime(min(start_ts), '%Y-%m-%dT%H:%M:%SZ') AS valid_from,
    strftime(max(end_ts), '%Y-%m-%dT%H:%M:%SZ') AS valid_to
FROM source
GROUP BY vc, gpus_capacity
ORDER BY vc
