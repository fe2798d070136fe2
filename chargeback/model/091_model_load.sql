-- Purpose: when models were loaded: the load time that an engine shows, before the window that first shows it. It is a new
--   load when the time rose, when counters began again with it, or when the engine is first seen after the period's first
--   hour: what it had loaded by then began before. Several engines of a node that load at once are one load, and a load
--   begins after the one before it.
-- Grain: server, cluster, node, to_ms
-- Reads: engine_seen

WITH shown AS (
    SELECT
        *, lag(model_load_ms) OVER (PARTITION BY server, cluster, node, model, engine_index, role ORDER BY from_ms) AS before_ms
    FROM engine_seen
    WHERE model_load_ms IS NOT NULL
),
loaded AS (
    SELECT server, cluster, node, from_ms AS to_ms, max(model_load_ms) AS load_ms
    FROM shown
    WHERE model_load_ms > 0
      AND CASE WHEN before_ms IS NULL THEN from_ms >= seconds_of($period_start) * 1000 + 3600000
               ELSE model_load_ms > before_ms OR counter_resets > 0 END
    GROUP BY ALL
)
SELECT
    server, cluster, node, to_ms,
    greatest(
        to_ms - load_ms, seconds_of($period_start) * 1000,
        coalesce(lag(to_ms) OVER (PARTITION BY server, cluster, node ORDER BY to_ms), to_ms - load_ms)
    ) AS from_ms
FROM loaded
