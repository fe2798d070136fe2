-- Purpose: which GPUs stand behind the engines of a node, from when to when in each hour that the server is watched there.
--   What the server holds on a node whose engines are watched at any time of the period is that node's. What it holds by pool,
--   or on nodes where no engine of it is ever seen (workers of an engine of several nodes), is shared alike among the nodes
--   watched in the hour. So that no share leaves a rest, `rate` counts millionths of a GPU `nodes` times over: of GPU-ms
--   measured by it, `nodes` x 1000 x the held GPU-microseconds are the server's whole hour.
-- Grain: server, hour_number, cluster, node, from_ms
-- Reads: held_hour, holder_interval, engine_seen, model_load

WITH watched AS (
    SELECT server, cluster, node, from_ms // 3600000 AS hour_number FROM engine_seen WHERE window_ms > 0
    UNION
    SELECT server, cluster, node, unnest(range(from_ms // 3600000, (to_ms - 1) // 3600000 + 1)) AS hour_number FROM model_load
),
place AS (
    SELECT *, count(*) OVER (PARTITION BY server, hour_number) AS nodes FROM watched
),
known AS (
    SELECT DISTINCT server, cluster, node, true AS is_watched FROM watched
),
clipped AS (
    SELECT
        h.server, h.hour_number, k.cluster, k.node, coalesce(k.is_watched, false) AS is_watched, h.held_gpu_microseconds,
        greatest(seconds_of(i.held_from), h.hour_number * 3600) AS from_s,
        least(seconds_of(i.held_to), h.hour_number * 3600 + 3600) AS to_s
    FROM held_hour AS h
    JOIN holder_interval AS i USING (snapshot_id, source_row)
    LEFT JOIN known AS k
        ON k.server = h.server AND k.node = h.node AND k.cluster IS NOT DISTINCT FROM h.cluster
    WHERE h.server IS NOT NULL AND h.is_placed AND h.pool IS NOT NULL
),
piece AS (
    SELECT
        server, hour_number, cluster, node, is_watched, from_s, to_s,
        CAST(sum(held_gpu_microseconds // (to_s - from_s)) AS HUGEINT) AS gpu_millionths
    FROM clipped
    GROUP BY ALL
),
laid AS (
    SELECT p.*, i.from_s, i.to_s, p.nodes * i.gpu_millionths AS rate
    FROM place AS p
    JOIN piece AS i
        ON i.server = p.server AND i.hour_number = p.hour_number AND i.is_watched AND i.node = p.node
       AND i.cluster IS NOT DISTINCT FROM p.cluster
    UNION ALL
    SELECT p.*, i.from_s, i.to_s, i.gpu_millionths AS rate
    FROM place AS p
    JOIN piece AS i ON i.server = p.server AND i.hour_number = p.hour_number AND NOT i.is_watched
),
edge AS (
    SELECT server, hour_number, cluster, node, nodes, from_s AS at_s, rate FROM laid
    UNION ALL
    SELECT server, hour_number, cluster, node, nodes, to_s AS at_s, -rate AS rate FROM laid
),
step AS (
    SELECT server, hour_number, cluster, node, nodes, at_s, sum(rate) AS rate FROM edge GROUP BY ALL
),
segment AS (
    SELECT
        server, hour_number, cluster, node, nodes, at_s * 1000 AS from_ms, lead(at_s) OVER place_line * 1000 AS to_ms,
        CAST(sum(rate) OVER place_line AS HUGEINT) AS rate
    FROM step
    WINDOW place_line AS (PARTITION BY server, hour_number, cluster, node ORDER BY at_s)
)
SELECT * FROM segment WHERE rate > 0
