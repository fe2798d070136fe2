-- Purpose: what the engines of each model server counted themselves, hour by hour: the truth that gateways' ledgers are
--   measured against, and the time spent in prefill and decode. Input includes what was cached.
--   Only hours that were watched (59 minutes of windows or more) count: tokens of a part of an hour would make tenants pay for
--   the rest. A count that one of the server's engines does not report is not known for the server; what an engine tells of
--   all its indices at once (engine_index NULL) stands for those that do not. Where prefill and decode run apart both count the
--   same prompts, and prefill makes a token that decode makes again: each is counted once.
--   Busy times are seconds of devices, known where the two phases are nine tenths of all that was computed; `prefill_ms` and
--   `decode_ms` are seconds of requests, of which those in one batch share one.
-- Grain: server, hour_number
-- Reads: engine_window, engine_histogram

WITH seen AS (
    SELECT
        server, cluster, node, model, engine_index, role, seconds_of(window_start) // 3600 AS hour_number,
        seconds_of(window_start) AS window_from_s, window_ms, busy_ms,
        CASE WHEN role = 'decode' THEN 0 ELSE prompt_tokens END AS prompt_tokens,
        CASE WHEN role = 'decode' THEN 0 ELSE prompt_cached_tokens END AS prompt_cached_tokens,
        CASE WHEN role = 'prefill' THEN 0 ELSE generation_tokens END AS generation_tokens,
        CASE WHEN role = 'decode' THEN coalesce(prefill_busy_ms, 0) ELSE prefill_busy_ms END AS prefill_busy_ms,
        CASE WHEN role = 'prefill' THEN coalesce(decode_busy_ms, 0) ELSE decode_busy_ms END AS decode_busy_ms
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
        sum(prompt_cached_tokens) AS prompt_cached_tokens, sum(generation_tokens) AS generation_tokens,
        sum(prefill_busy_ms) AS prefill_busy_ms, sum(decode_busy_ms) AS decode_busy_ms, sum(busy_ms) AS busy_ms
    FROM seen
    GROUP BY ALL
),
counted AS (
    SELECT e.*, c.name, c.value
    FROM engine AS e
    CROSS JOIN LATERAL (
        VALUES ('input', e.prompt_tokens), ('cached_input', e.prompt_cached_tokens), ('output', e.generation_tokens),
               ('prefill_busy', e.prefill_busy_ms), ('decode_busy', e.decode_busy_ms), ('busy', e.busy_ms)
    ) AS c(name, value)
),
model_count AS (
    SELECT
        server, hour_number, cluster, node, model, role, name,
        CASE WHEN coalesce(bool_or(value IS NOT NULL) FILTER (WHERE engine_index IS NULL), false)
                  OR coalesce(bool_and(value IS NOT NULL) FILTER (WHERE engine_index IS NOT NULL), false)
             THEN sum(value) END AS value
    FROM counted
    GROUP BY ALL
),
server_count AS (
    SELECT server, hour_number, name, CASE WHEN bool_and(value IS NOT NULL) THEN CAST(sum(value) AS BIGINT) END AS value
    FROM model_count
    GROUP BY ALL
),
hour_count AS (
    SELECT
        server, hour_number, any_value(value) FILTER (WHERE name = 'input') AS input_tokens,
        any_value(value) FILTER (WHERE name = 'cached_input') AS cached_input_tokens,
        any_value(value) FILTER (WHERE name = 'output') AS output_tokens,
        any_value(value) FILTER (WHERE name = 'prefill_busy') AS prefill_busy_ms,
        any_value(value) FILTER (WHERE name = 'decode_busy') AS decode_busy_ms,
        any_value(value) FILTER (WHERE name = 'busy') AS busy_ms
    FROM server_count
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
    e.server, e.hour_number, e.input_tokens, e.cached_input_tokens, e.output_tokens,
    CAST(p.prefill_ms AS BIGINT) AS prefill_ms, CAST(p.decode_ms AS BIGINT) AS decode_ms,
    CASE WHEN 10 * (e.prefill_busy_ms + e.decode_busy_ms) >= 9 * e.busy_ms THEN e.prefill_busy_ms END AS prefill_busy_ms,
    CASE WHEN 10 * (e.prefill_busy_ms + e.decode_busy_ms) >= 9 * e.busy_ms THEN e.decode_busy_ms END AS decode_busy_ms
FROM hour_count AS e
JOIN watched AS w USING (server, hour_number)
LEFT JOIN phase AS p USING (server, hour_number)
