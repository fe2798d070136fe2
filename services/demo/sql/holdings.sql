-- Purpose: what each virtual cluster held. The trace says how many GPUs, not which: holdings of the pool.
--   Two of them are given a model server: from 18 May, 64 of the GPUs that vc6YE held and 32 of those that vcpDC held are
--   named as the server's. What a virtual cluster held in all is the trace's at every minute.
-- Grain: none
-- Reads: source

WITH server AS (
    SELECT *, TIMESTAMP '2020-05-18' AS served_from, TIMESTAMP '2020-06-01' AS served_to
    FROM (VALUES ('vc6YE', 'llm-large', 64), ('vcpDC', 'llm-small', 32)) AS s(vc, workload, server_gpus)
),
cut AS (
    SELECT h.*, greatest(h.start_ts, p.from_ts) AS part_from, least(h.end_ts, p.to_ts) AS part_to, p.server_gpus
    FROM source AS h
    JOIN (
        SELECT
            vc, '-infinity'::TIMESTAMP AS from_ts, coalesce(served_from, 'infinity'::TIMESTAMP) AS to_ts, 0 AS server_gpus
        FROM (SELECT DISTINCT vc FROM source) LEFT JOIN server USING (vc)
        UNION ALL
        SELECT vc, served_from, served_to, server_gpus FROM server
    ) AS p ON p.vc = h.vc AND p.from_ts < h.end_ts AND p.to_ts > h.start_ts
),
holding AS (
    SELECT
        part_from, part_to, gpus_running - server_gpus AS gpus, vc, NULL AS namespace, NULL AS workload,
        'virtual_cluster' AS owner_kind, 'helios' AS source
    FROM cut
    UNION ALL
    SELECT served_from, served_to, server_gpus, vc, 'serving', workload, 'model_server', 'composition' FROM server
)
SELECT
    strftime(part_from, '%Y-%m-%dT%H:%M:%SZ') AS start, strftime(part_to, '%Y-%m-%dT%H:%M:%SZ') AS "end", gpus,
    'earth-v100' AS pool, vc AS team, namespace, workload, owner_kind, source
FROM holding
-- A negative rest would be a server larger than what was held: it stays, and the load refuses it.
WHERE gpus <> 0
ORDER BY part_from, vc, workload NULLS FIRST
