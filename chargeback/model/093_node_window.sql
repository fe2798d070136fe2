-- Purpose: each window in which a server was watched on a node that it held something of: how long and with how many GPUs it
--   held it (`held_gpu_ms`: by the rates of server_held), and for how long its engines slept there or had nothing to do. Engines
--   of a node share its GPUs: a moment is asleep or quiet only where all of them must be. Unknown, for which a gauge is
--   missing, is NULL. A window ends where the next one of the node or the next hour begins: rows of several replicas under one
--   name must not count their time twice.
-- Grain: server, cluster, node, from_ms
-- Reads: engine_seen, server_held

-- Of spans inside one window whose places are unknown, at least sum - (count - 1) x window is common to all.
WITH state AS (
    SELECT
        server, cluster, node, from_ms, from_ms // 3600000 AS hour_number, max(window_ms) AS window_ms,
        count(model_load_ms) > 0 AS has_load, max(watched_ms) AS watched_ms,
        CASE WHEN count(asleep_ms) = 0 THEN NULL
             WHEN sum(coalesce(prompt_tokens, 0) + coalesce(generation_tokens, 0)) FILTER (WHERE asleep_ms IS NULL) > 0 THEN 0
             ELSE greatest(sum(asleep_ms) - (count(asleep_ms) - 1) * max(window_ms), 0) END AS asleep_ms,
        CASE WHEN count(running_request_ms) = 0 OR count(generation_tokens) = 0 THEN NULL
             WHEN sum(running_request_ms) > 0 OR sum(prompt_tokens) > 0 OR sum(generation_tokens) > 0 THEN 0
             ELSE greatest(
                 sum(running_observed_ms) FILTER (WHERE running_request_ms IS NOT NULL)
                 - (count(running_request_ms) - 1) * max(window_ms), 0
             ) END AS quiet_ms
    FROM engine_seen
    GROUP BY server, cluster, node, from_ms
    HAVING max(window_ms) > 0
),
span AS (
    SELECT
        *, least(
            from_ms + window_ms, hour_number * 3600000 + 3600000,
            lead(from_ms, 1, 9223372036854775807) OVER (PARTITION BY server, cluster, node ORDER BY from_ms)
        ) AS to_ms
    FROM state
)
SELECT
    s.server, s.cluster, s.node, s.from_ms, s.to_ms, s.hour_number, s.has_load, s.watched_ms,
    CAST(s.asleep_ms AS BIGINT) AS asleep_ms, CAST(s.quiet_ms AS BIGINT) AS quiet_ms,
    CAST(sum(least(h.to_ms, s.to_ms) - greatest(h.from_ms, s.from_ms)) AS BIGINT) AS held_ms,
    CAST(sum((least(h.to_ms, s.to_ms) - greatest(h.from_ms, s.from_ms)) * h.rate) AS HUGEINT) AS held_gpu_ms
FROM span AS s
JOIN server_held AS h
    ON h.server = s.server AND h.hour_number = s.hour_number AND h.node = s.node AND h.cluster IS NOT DISTINCT FROM s.cluster
   AND h.from_ms < s.to_ms AND h.to_ms > s.from_ms
GROUP BY ALL
