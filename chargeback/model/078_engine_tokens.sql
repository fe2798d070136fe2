-- Purpose: what the engines of each model server counted themselves, hour by hour: the truth that gateways' ledgers are
--   measured against, and the time spent in prefill and decode. Input includes what was cached.
--   Only hours that were watched (59 minutes of windows or more) count: tokens of a part of an hour would make tenants pay for
--   the rest. A count that one of the server's engines does not report is not known for the server. Where prefill and decode
--   run apart both count the same prompts, and prefill makes a token that decode makes again: each is counted once.
-- Grain: server, hour_number
-- Reads: engine_window, engine_histogram

WITH seen AS (
    SELECT
        server, cluster, node, model, engine_index, role, seconds_of(window_start) // 3600 AS hour_number,
        seconds_of(window_start) AS window_from_s, window_ms,
        CASE WHEN role = 'decode' THEN 0 ELSE prompt_tokens END AS prompt_tokens,
        CASE WHEN role = 'decode' THEN 0 ELSE prompt_cached_tokens END AS prompt_cached_tokens,
        CASE WHEN role = 'prefill' THEN 0 ELSE generation_tokens END AS generation_tokens
    FROM engine_window
    WHERE day BETWEEN seconds_of($period_start) // 86400 AND (seconds_of($period_end) - 1) // 86400
),
watched_window AS (
    SELECT server, hour_number, window_from_s, max(window_ms) AS window_ms
    FROM (
        SELECT server, cluster, node, model, engine_index, role, hour_number, window_from_s, sum(window_ms) AS window_ms
        FROM seen GROUP BY ALL
    )
    GROUP BY ALL
),
watched AS (
    SELECT server, hour_number FROM watched_window GROUP BY ALL HAVING sum(window_ms) >= 3540000
),
engine AS (
    SELECT
        server, hour_number, cluster, node, model, engine_index, role, sum(prompt_tokens) AS prompt_tokens,
        sum(prompt_cached_tokens) AS prompt_cached_tokens, sum(generation_tokens) AS generation_tokens
    FROM seen
    GROUP BY ALL
),
phase AS (
    SELECT
        server, seconds_of(window_start) // 3600 AS hour_number,
        sum(sum_microunits) FILTER (WHERE signal = 'prefill_time_seconds') // 1000 AS prefill_ms,
        sum(sum_microunits) FILTER (WHERE signal = 'decode_time_seconds') // 1000 AS decode_ms
    FROM engine_histogram
    WHERE day BETWEEN seconds_of($period_start) // 86400 AND (seconds_of($period_end) - 1) // 86400
    GROUP BY ALL
)
SELECT
    e.server, e.hour_number,
    CASE WHEN bool_and(e.prompt_tokens IS NOT NULL) THEN CAST(sum(e.prompt_tokens) AS BIGINT) END AS input_tokens,
    CASE WHEN bool_and(e.prompt_cached_tokens IS NOT NULL) THEN CAST(sum(e.prompt_cached_tokens) AS BIGINT) END
        AS cached_input_tokens,
    CASE WHEN bool_and(e.generation_tokens IS NOT NULL) THEN CAST(sum(e.generation_tokens) AS BIGINT) END AS output_tokens,
    CAST(any_value(p.prefill_ms) AS BIGINT) AS prefill_ms, CAST(any_value(p.decode_ms) AS BIGINT) AS decode_ms
FROM engine AS e
JOIN watched AS w USING (server, hour_number)
LEFT JOIN phase AS p USING (server, hour_number)
GROUP BY e.server, e.hour_number
