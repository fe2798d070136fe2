-- Purpose: what the GPUs of a server did on each node in each hour, as its engines tell, in GPU-ms by the rates of server_held:
--   first loading a model (`cold`), then `asleep`, then `idle` (watched, nothing ran and no token was added); the `rest` was
--   watched and none of these. Unknown, for which a gauge is missing, is NULL; a 0 is known.
--   Where a window was held for a part of it only, the engine is taken to have been there then: what was watched for longer
--   than that counts in proportion.
-- Grain: server, hour_number, cluster, node
-- Reads: model_load, server_held, node_window

WITH cold_segment AS (
    SELECT
        h.server, h.hour_number, h.cluster, h.node, greatest(h.from_ms, l.from_ms) AS from_ms,
        least(h.to_ms, l.to_ms) AS to_ms, h.rate
    FROM server_held AS h
    JOIN model_load AS l
        ON l.server = h.server AND l.node IS NOT DISTINCT FROM h.node AND l.cluster IS NOT DISTINCT FROM h.cluster
       AND l.from_ms < h.to_ms AND l.to_ms > h.from_ms
),
cold_hour AS (
    SELECT server, hour_number, cluster, node, CAST(sum((to_ms - from_ms) * rate) AS HUGEINT) AS cold_gpu_ms
    FROM cold_segment
    GROUP BY ALL
),
cold_window AS (
    SELECT
        s.server, s.cluster, s.node, s.from_ms,
        CAST(sum(least(c.to_ms, s.to_ms) - greatest(c.from_ms, s.from_ms)) AS BIGINT) AS cold_ms,
        CAST(sum((least(c.to_ms, s.to_ms) - greatest(c.from_ms, s.from_ms)) * c.rate) AS HUGEINT) AS cold_gpu_ms
    FROM node_window AS s
    JOIN cold_segment AS c
        ON c.server = s.server AND c.hour_number = s.hour_number AND c.node = s.node AND c.cluster IS NOT DISTINCT FROM s.cluster
       AND c.from_ms < s.to_ms AND c.to_ms > s.from_ms
    GROUP BY ALL
),
free AS (
    SELECT
        w.*, w.held_ms - coalesce(c.cold_ms, 0) AS free_ms, w.held_gpu_ms - coalesce(c.cold_gpu_ms, 0) AS free_gpu_ms,
        CAST(greatest(w.held_ms, w.watched_ms) AS HUGEINT) AS whole_ms
    FROM node_window AS w
    LEFT JOIN cold_window AS c
        ON c.server = w.server AND c.node = w.node AND c.cluster IS NOT DISTINCT FROM w.cluster AND c.from_ms = w.from_ms
),
laid AS (
    SELECT
        *, least(coalesce(asleep_ms, 0) * held_ms // whole_ms, free_ms) AS asleep_to_ms,
        -- Asleep is quiet too.
        least(asleep_to_ms + greatest(coalesce(quiet_ms, 0) - coalesce(asleep_ms, 0), 0) * held_ms // whole_ms, free_ms)
            AS idle_to_ms,
        CAST(CASE WHEN free_ms > 0 THEN free_gpu_ms * asleep_to_ms // free_ms ELSE 0 END AS HUGEINT) AS asleep_to_gpu_ms,
        CAST(CASE WHEN free_ms > 0 THEN free_gpu_ms * idle_to_ms // free_ms ELSE 0 END AS HUGEINT) AS idle_to_gpu_ms
    FROM free
),
seen_hour AS (
    SELECT
        server, hour_number, cluster, node, bool_or(has_load) AS has_load,
        CAST(sum(asleep_to_gpu_ms) FILTER (WHERE asleep_ms IS NOT NULL) AS HUGEINT) AS asleep_gpu_ms,
        CAST(sum(idle_to_gpu_ms - asleep_to_gpu_ms) FILTER (WHERE quiet_ms IS NOT NULL) AS HUGEINT) AS idle_gpu_ms,
        CAST(sum(free_gpu_ms - idle_to_gpu_ms) AS HUGEINT) AS rest_gpu_ms
    FROM laid
    GROUP BY ALL
)
SELECT
    coalesce(s.server, c.server) AS server, coalesce(s.hour_number, c.hour_number) AS hour_number,
    coalesce(s.cluster, c.cluster) AS cluster, coalesce(s.node, c.node) AS node,
    coalesce(c.cold_gpu_ms, CASE WHEN s.has_load THEN 0 END) AS cold_gpu_ms, s.asleep_gpu_ms, s.idle_gpu_ms, s.rest_gpu_ms
FROM seen_hour AS s
FULL JOIN cold_hour AS c
    ON c.server = s.server AND c.hour_number = s.hour_number AND c.node IS NOT DISTINCT FROM s.node
   AND c.cluster IS NOT DISTINCT FROM s.cluster
