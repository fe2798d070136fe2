-- Purpose: what the replicas held that were more than enough, in GPU-ms by the rates of server_held. In each window those
--   beyond the number that is needed count, the smallest first; replicas of one node share its GPUs alike.
-- Grain: server, hour_number
-- Reads: replica_window, node_window, replica_need

WITH spare AS (
    SELECT group_number, server, needed_replicas FROM replica_need WHERE needed_replicas < replicas
),
-- Other groups of the same server share its nodes too.
node_replica AS (
    SELECT server, cluster, node, from_ms, count(*) AS replicas
    FROM replica_window
    WHERE server IN (SELECT server FROM spare)
    GROUP BY ALL
),
replica AS (
    SELECT
        r.group_number, r.replica_number, r.from_ms, s.server, s.needed_replicas, h.hour_number,
        h.held_gpu_ms // n.replicas AS held_gpu_ms
    FROM replica_window AS r
    JOIN spare AS s USING (group_number)
    JOIN node_replica AS n
        ON n.server = r.server AND n.node = r.node AND n.cluster IS NOT DISTINCT FROM r.cluster AND n.from_ms = r.from_ms
    JOIN node_window AS h
        ON h.server = r.server AND h.node = r.node AND h.cluster IS NOT DISTINCT FROM r.cluster AND h.from_ms = r.from_ms
),
placed AS (
    SELECT
        *, count(*) OVER group_window AS replicas,
        row_number() OVER (group_window ORDER BY held_gpu_ms, replica_number) AS place
    FROM replica
    WINDOW group_window AS (PARTITION BY group_number, from_ms)
)
SELECT server, hour_number, CAST(sum(held_gpu_ms) AS HUGEINT) AS surplus_gpu_ms
FROM placed
WHERE place <= replicas - needed_replicas
GROUP BY ALL
