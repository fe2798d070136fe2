-- Purpose: what part of each hour of a shared model server came to nothing, as its engines tell, beside the ledger (no posting
--   comes of it). Each moment is in one class at most, in this order: `cold_start` (a model was loaded: the time before the
--   window that first shows a new load time), `asleep`, `idle` (watched, nothing ran and no token was added), and of the
--   rest of the watched time `wasted_work`: the share of the hour's tokens that no finished request got.
--   Engines of a node share its GPUs, so that a moment is asleep or idle only where all of them must be; several nodes count
--   alike. A class without a row is unknown; 0 is known. What an engine had loaded in the period's first hour began before.
--   Tokens under way at an hour's end count when they finish: of the tokens not finished so far, those are wasted that no
--   later hour finishes.
-- Grain: server, team, currency, hour_number, class
-- Reads: engine_window, server_cost

WITH seen AS (
    SELECT
        server, cluster, node, model, engine_index, role, seconds_of(window_start) * 1000 AS from_ms,
        CAST(sum(window_ms) AS BIGINT) AS window_ms, CAST(sum(running_request_ms) AS HUGEINT) AS running_request_ms,
        CAST(sum(running_observed_ms) AS BIGINT) AS running_observed_ms, CAST(sum(asleep_ms) AS BIGINT) AS asleep_ms,
        max(model_load_ms) AS model_load_ms, sum(counter_resets) AS counter_resets,
        CAST(sum(prompt_tokens) AS HUGEINT) AS prompt_tokens, CAST(sum(generation_tokens) AS HUGEINT) AS generation_tokens,
        CAST(sum(finished_generation_tokens) AS HUGEINT) AS finished_tokens,
        coalesce(bool_or(generation_is_at_finish), false) AS is_at_finish
    FROM engine_window
    WHERE day BETWEEN seconds_of($period_start) // 86400 AND (seconds_of($period_end) - 1) // 86400
    GROUP BY ALL
),
shown AS (
    SELECT
        *, lag(model_load_ms) OVER (PARTITION BY server, cluster, node, model, engine_index, role ORDER BY from_ms) AS before_ms
    FROM seen
    WHERE model_load_ms IS NOT NULL
),
-- Several engines that load at once are one load of the node.
loaded AS (
    SELECT server, cluster, node, from_ms AS to_ms, max(model_load_ms) AS load_ms
    FROM shown
    WHERE model_load_ms > 0
      AND CASE WHEN before_ms IS NULL THEN from_ms >= seconds_of($period_start) * 1000 + 3600000
               ELSE model_load_ms > before_ms OR counter_resets > 0 END
    GROUP BY ALL
),
load AS (
    SELECT
        server, cluster, node, to_ms,
        greatest(
            to_ms - load_ms, seconds_of($period_start) * 1000,
            coalesce(lag(to_ms) OVER (PARTITION BY server, cluster, node ORDER BY to_ms), to_ms - load_ms)
        ) AS from_ms
    FROM loaded
),
load_hour AS (
    SELECT *, unnest(range(from_ms // 3600000, (to_ms - 1) // 3600000 + 1)) AS hour_number FROM load
),
cold AS (
    SELECT
        server, cluster, node, hour_number,
        sum(least(to_ms, hour_number * 3600000 + 3600000) - greatest(from_ms, hour_number * 3600000)) AS cold_ms
    FROM load_hour
    GROUP BY ALL
),
-- Of spans inside one window whose places are unknown, at least sum - (count - 1) x window is common to all.
node_window AS (
    SELECT
        server, cluster, node, from_ms, max(window_ms) AS window_ms, count(model_load_ms) > 0 AS has_load,
        CASE WHEN count(asleep_ms) = 0 THEN NULL
             WHEN sum(coalesce(prompt_tokens, 0) + coalesce(generation_tokens, 0)) FILTER (WHERE asleep_ms IS NULL) > 0 THEN 0
             ELSE greatest(sum(asleep_ms) - (count(asleep_ms) - 1) * max(window_ms), 0) END AS asleep_ms,
        CASE WHEN count(running_request_ms) = 0 OR count(generation_tokens) = 0 THEN NULL
             WHEN sum(running_request_ms) > 0 OR sum(prompt_tokens) > 0 OR sum(generation_tokens) > 0 THEN 0
             ELSE greatest(
                 sum(running_observed_ms) FILTER (WHERE running_request_ms IS NOT NULL)
                 - (count(running_request_ms) - 1) * max(window_ms), 0
             ) END AS quiet_ms
    FROM seen
    GROUP BY ALL
),
overlap AS (
    SELECT
        w.server, w.cluster, w.node, w.from_ms,
        sum(least(l.to_ms, w.from_ms + w.window_ms) - greatest(l.from_ms, w.from_ms)) AS cold_ms
    FROM node_window AS w
    JOIN load AS l
        ON l.server = w.server AND l.cluster IS NOT DISTINCT FROM w.cluster AND l.node IS NOT DISTINCT FROM w.node
       AND l.from_ms < w.from_ms + w.window_ms AND l.to_ms > w.from_ms
    GROUP BY ALL
),
classed AS (
    SELECT
        w.* EXCLUDE (asleep_ms), w.window_ms - coalesce(o.cold_ms, 0) AS free_ms,
        CASE WHEN w.asleep_ms IS NOT NULL THEN least(w.asleep_ms, free_ms) END AS slept_ms,
        -- Asleep is quiet too.
        CASE WHEN w.quiet_ms IS NOT NULL
             THEN least(greatest(w.quiet_ms - coalesce(w.asleep_ms, 0), 0), free_ms - coalesce(slept_ms, 0)) END AS idle_ms
    FROM node_window AS w
    LEFT JOIN overlap AS o
        ON o.server = w.server AND o.cluster IS NOT DISTINCT FROM w.cluster AND o.node IS NOT DISTINCT FROM w.node
       AND o.from_ms = w.from_ms
),
node_hour AS (
    SELECT
        server, cluster, node, from_ms // 3600000 AS hour_number, CASE WHEN bool_or(has_load) THEN 0 END AS cold_ms,
        sum(slept_ms) AS asleep_ms, sum(idle_ms) AS idle_ms,
        sum(free_ms - coalesce(slept_ms, 0) - coalesce(idle_ms, 0)) AS rest_ms
    FROM classed
    GROUP BY ALL
    UNION ALL BY NAME
    SELECT * FROM cold
),
server_time AS (
    SELECT
        server, hour_number, CAST(sum(cold_ms) AS HUGEINT) AS cold_ms, CAST(sum(asleep_ms) AS HUGEINT) AS asleep_ms,
        CAST(sum(idle_ms) AS HUGEINT) AS idle_ms, CAST(sum(rest_ms) AS HUGEINT) AS rest_ms,
        CAST(greatest(
            count(DISTINCT (cluster, node)) * 3600000,
            sum(coalesce(cold_ms, 0) + coalesce(asleep_ms, 0) + coalesce(idle_ms, 0) + coalesce(rest_ms, 0))
        ) AS HUGEINT) AS whole_ms
    FROM node_hour
    GROUP BY ALL
),
-- Prefill makes a token that decode makes again; where tokens count when their request ends, nothing tells of lost ones.
node_made AS (
    SELECT
        server, cluster, node, from_ms // 3600000 AS hour_number, sum(generation_tokens) AS made,
        sum(finished_tokens) AS finished, bool_or(is_at_finish) AS is_at_finish
    FROM seen
    WHERE role IS DISTINCT FROM 'prefill'
    GROUP BY ALL
),
made AS (
    SELECT server, hour_number, CAST(sum(made) AS HUGEINT) AS made, CAST(sum(finished) AS HUGEINT) AS finished
    FROM node_made
    GROUP BY ALL
    HAVING bool_and(made IS NOT NULL AND finished IS NOT NULL AND NOT is_at_finish)
),
unfinished AS (
    SELECT
        *, sum(made - finished) OVER (PARTITION BY server ORDER BY hour_number) AS so_far
    FROM made
),
lost AS (
    SELECT
        *, min(so_far) OVER (
            PARTITION BY server ORDER BY hour_number ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS lost_to
    FROM unfinished
),
wasted AS (
    SELECT
        server, hour_number, made,
        CAST(lost_to - coalesce(lag(lost_to) OVER (PARTITION BY server ORDER BY hour_number), least(lost_to, 0)) AS HUGEINT)
            AS lost_tokens
    FROM lost
),
class_time AS (
    SELECT server, hour_number, whole_ms, 1 AS class_order, 'cold_start' AS class, cold_ms AS class_ms FROM server_time
    UNION ALL
    SELECT server, hour_number, whole_ms, 2, 'asleep', asleep_ms FROM server_time
    UNION ALL
    SELECT server, hour_number, whole_ms, 3, 'idle', idle_ms FROM server_time
    UNION ALL
    SELECT
        t.server, t.hour_number, t.whole_ms, 4, 'wasted_work',
        CASE WHEN w.made = 0 THEN 0 ELSE t.rest_ms * w.lost_tokens // w.made END
    FROM server_time AS t
    JOIN wasted AS w USING (server, hour_number)
),
laid AS (
    SELECT
        *, CAST(sum(class_ms) OVER (PARTITION BY server, hour_number ORDER BY class_order) AS HUGEINT) AS class_to_ms
    FROM class_time
    WHERE class_ms IS NOT NULL
),
cost AS (
    SELECT
        server, owner AS team, currency, hour_number, CAST(sum(cost_pico) AS HUGEINT) AS cost_pico,
        CAST(sum(gpu_microseconds) AS HUGEINT) AS gpu_microseconds
    FROM server_cost
    GROUP BY ALL
)
SELECT
    c.server, c.team, c.currency, c.hour_number, l.class,
    split_of(c.cost_pico, l.class_to_ms, l.whole_ms) - split_of(c.cost_pico, l.class_to_ms - l.class_ms, l.whole_ms)
        AS amount_pico,
    CAST(split_of(c.gpu_microseconds, l.class_to_ms, l.whole_ms)
        - split_of(c.gpu_microseconds, l.class_to_ms - l.class_ms, l.whole_ms) AS BIGINT) AS gpu_microseconds
FROM cost AS c
JOIN laid AS l USING (server, hour_number)
