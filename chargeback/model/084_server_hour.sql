-- Purpose: how each hour of a shared model server is divided: the tokens that gateways reported beside those that the
--   engine counted, and the weight that the hour's cost is divided by.
--   `engine`: the engine's own count, where there is one; what gateways do not explain of it (aborted streams, direct
--   traffic, health checks) is `gap_weight`: unattributed, and negative where gateways report more, never clamped. Where
--   a gateway does not report cached tokens, the engine's are weighed as that gateway's are: with one ruler.
--   `gateway`: without the engine's count, what was reported, and for requests without tokens the mean weight of the
--   hour's requests, which is reserved as unattributed: others do not pay for what was not reported.
--   `unknown`: something ran, or nobody knows whether anything did. `idle`: nothing ran in an hour of a server whose tokens
--   are known.
-- Grain: server, hour_number
-- Reads: server_cost, token_hour, token_weight, engine_tokens

WITH costed AS (
    SELECT DISTINCT server, hour_number FROM server_cost
),
told AS (
    SELECT DISTINCT server FROM token_hour
    WHERE hour_number >= seconds_of($period_start) // 3600 AND hour_number < seconds_of($period_end) // 3600
),
reported AS (
    SELECT
        server, hour_number,
        CAST(sum(uncached_input_tokens) AS HUGEINT) AS uncached_input_tokens,
        CAST(sum(cached_input_tokens) AS HUGEINT) AS cached_input_tokens, CAST(sum(output_tokens) AS HUGEINT) AS output_tokens,
        CAST(coalesce(sum(weight), 0) AS HUGEINT) AS weight,
        bool_and(has_cached) FILTER (WHERE is_reported) AS has_cached,
        CAST(sum(requests) FILTER (WHERE NOT is_reported) AS BIGINT) AS unreported_requests,
        coalesce(bool_or(NOT is_reported AND coalesce(worked_requests, 1) > 0), false) AS has_unreported,
        -- The ruler for requests without tokens: the mean of those with.
        CAST(sum(weight) FILTER (WHERE worked_requests > 0) AS HUGEINT) AS mean_weight,
        CAST(sum(worked_requests) FILTER (WHERE is_reported AND worked_requests > 0) AS HUGEINT) AS mean_requests
    FROM token_hour
    GROUP BY ALL
),
counted AS (
    SELECT
        c.server, c.hour_number, r.* EXCLUDE (server, hour_number, weight, has_unreported, has_cached),
        coalesce(r.weight, 0) AS reported_weight, coalesce(r.has_unreported, false) AS has_unreported,
        e.input_tokens AS engine_input_tokens, e.cached_input_tokens AS engine_cached_input_tokens,
        e.output_tokens AS engine_output_tokens,
        CASE WHEN r.has_cached IS NULL OR r.has_cached THEN coalesce(e.cached_input_tokens, 0)
             ELSE r.cached_input_tokens END AS engine_cached,
        w.input_weight * (e.input_tokens - engine_cached) + w.cached_input_weight * engine_cached
            + w.output_weight * e.output_tokens AS engine_weight,
        coalesce(r.uncached_input_tokens + r.cached_input_tokens + r.output_tokens, 0)
            + coalesce(e.input_tokens + e.output_tokens, 0) > 0 AS has_tokens,
        t.server IS NOT NULL OR e.input_tokens IS NOT NULL AND e.output_tokens IS NOT NULL AS is_told
    FROM costed AS c
    JOIN token_weight AS w USING (server)
    LEFT JOIN reported AS r USING (server, hour_number)
    LEFT JOIN engine_tokens AS e USING (server, hour_number)
    LEFT JOIN told AS t USING (server)
)
SELECT
    * EXCLUDE (engine_cached, has_tokens, is_told, has_unreported),
    CASE WHEN engine_weight > 0 THEN 'engine' WHEN reported_weight > 0 THEN 'gateway'
         WHEN has_tokens OR has_unreported OR NOT is_told THEN 'unknown' ELSE 'idle' END AS basis,
    CASE WHEN engine_weight > 0 THEN engine_weight - reported_weight END AS gap_weight
FROM counted
