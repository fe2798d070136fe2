-- Purpose: what agents saw of each engine of the model servers, window by window, added up: an agent's restart cuts a window
--   in two rows. Times in ms since 1970; a row of `window_ms` 0 only brings counters.
-- Grain: server, cluster, node, model, engine_index, role, from_ms
-- Reads: engine_window

SELECT
    server, cluster, node, model, engine_index, role, seconds_of(window_start) * 1000 AS from_ms,
    CAST(sum(window_ms) AS BIGINT) AS window_ms,
    CAST(sum(greatest(observed_ms, running_observed_ms, asleep_ms)) AS BIGINT) AS watched_ms,
    CAST(sum(running_request_ms) AS HUGEINT) AS running_request_ms,
    CAST(sum(running_observed_ms) AS BIGINT) AS running_observed_ms, max(running_max_requests) AS running_max_requests,
    CAST(sum(kv_used_ms) AS BIGINT) AS kv_used_ms, CAST(sum(kv_observed_ms) AS BIGINT) AS kv_observed_ms,
    CAST(sum(asleep_ms) AS BIGINT) AS asleep_ms, max(model_load_ms) AS model_load_ms,
    CAST(sum(counter_resets) AS BIGINT) AS counter_resets,
    CAST(sum(prompt_tokens) AS HUGEINT) AS prompt_tokens, CAST(sum(prompt_cached_tokens) AS HUGEINT) AS prompt_cached_tokens,
    CAST(sum(finished_prompt_tokens) AS HUGEINT) AS finished_prompt_tokens,
    CAST(sum(generation_tokens) AS HUGEINT) AS generation_tokens,
    CAST(sum(finished_generation_tokens) AS HUGEINT) AS finished_generation_tokens,
    coalesce(bool_or(generation_is_at_finish), false) AS is_at_finish,
    CAST(sum(preemption_events) AS HUGEINT) AS preemption_events, CAST(sum(aborted_requests) AS HUGEINT) AS aborted_requests
FROM engine_window
WHERE day BETWEEN seconds_of($period_start) // 86400 AND (seconds_of($period_end) - 1) // 86400
GROUP BY ALL
