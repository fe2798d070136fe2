-- Purpose: how much of what a server's engines worked on its gateways explain, hour by hour: tokens of both and the part of
--   the weight that is covered; more than the whole where gateways report more than the engine counted. What gateways did
--   not report in the hour is NULL where they never report anything of the server in the period, or only requests without
--   tokens in the hour; in any other hour it is 0: they were asked, and had nothing.
-- Grain: server, hour_start
-- Scope: fleet
-- Reads: server_hour, token_share

WITH told AS (
    SELECT server, hour_start, bool_or(kind = 'tenant') AS has_tokens
    FROM lake.token_share
    WHERE period = $period AND kind IN ('tenant', 'unreported')
    GROUP BY ALL
),
hour AS (
    SELECT
        h.* EXCLUDE (uncached_input_tokens, cached_input_tokens, output_tokens),
        CASE WHEN t.has_tokens THEN h.uncached_input_tokens + h.cached_input_tokens
             WHEN t.server IS NULL AND h.server IN (SELECT server FROM told) THEN 0 END AS gateway_input_tokens,
        CASE WHEN t.has_tokens THEN h.output_tokens
             WHEN t.server IS NULL AND h.server IN (SELECT server FROM told) THEN 0 END AS gateway_output_tokens,
        t.server IS NOT NULL AS is_told
    FROM lake.server_hour AS h
    LEFT JOIN told AS t USING (server, hour_start)
    WHERE h.period = $period
)
SELECT
    server, hour_start, timezone($zone, hour_start) AS local_start, basis,
    CAST(gateway_input_tokens AS BIGINT) AS gateway_input_tokens,
    CAST(gateway_output_tokens AS BIGINT) AS gateway_output_tokens, CAST(engine_input_tokens AS BIGINT) AS engine_input_tokens,
    CAST(engine_output_tokens AS BIGINT) AS engine_output_tokens, unreported_requests, is_told,
    CASE WHEN engine_weight > 0
         THEN CAST(CAST(CAST(reported_weight AS HUGEINT) * 1000000 // CAST(engine_weight AS HUGEINT) AS DECIMAL(18, 0))
            * CAST(0.000001 AS DECIMAL(6, 6)) AS DECIMAL(18, 6))
    END AS covered_ratio
FROM hour
ORDER BY server, hour_start
