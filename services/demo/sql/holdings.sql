-- Purpose: what each virtual cluster held. The trace says how many GPUs, not which: holdings of the pool.
-- Grain: none
-- Reads: source

SELECT
    strftime(start_ts, '%Y-%m-%dT%H:%M:%SZ') AS start, strftime(end_ts, '%Y-%m-%dT%H:%M:%SZ') AS "end", gpus_running AS gpus,
    'earth-v100' AS pool, vc AS team, 'virtual_cluster' AS owner_kind, 'helios' AS source
FROM source
WHERE gpus_running > 0
ORDER BY start_ts, vc
