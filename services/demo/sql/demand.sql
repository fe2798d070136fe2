-- Purpose: what each virtual cluster's queued jobs asked for.
-- Grain: none
-- Reads: source

SELECT
    strftime(start_ts, '%Y-%m-%dT%H:%M:%SZ') AS start, strftime(end_ts, '%Y-%m-%dT%H:%M:%SZ') AS "end", gpus_pending AS gpus,
    'earth-v100' AS pool, vc AS team, 'helios' AS source
FROM source
WHERE gpus_pending > 0
ORDER BY start_ts, vc
