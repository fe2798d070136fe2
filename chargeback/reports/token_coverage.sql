-- Purpose: how much of what a server's engines worked on its gateways explain, hour by hour: tokens of both and the part of
--   the weight that is covered; more than the whole where gateways report more than the engine counted.
-- Grain: server, hour_start
-- Scope: fleet
-- Reads: server_hour

SELECT
    server, hour_start, timezone($zone, hour_start) AS local_start, basis,
    CAST(uncached_input_tokens + cached_input_tokens AS BIGINT) AS gateway_input_tokens,
    CAST(output_tokens AS BIGINT) AS gateway_output_tokens, CAST(engine_input_tokens AS BIGINT) AS engine_input_tokens,
    CAST(engine_output_tokens AS BIGINT) AS engine_output_tokens, unreported_requests,
    CASE WHEN engine_weight > 0
         THEN CAST(CAST(CAST(reported_weight AS HUGEINT) * 1000000 // CAST(engine_weight AS HUGEINT) AS DECIMAL(18, 0))
            * CAST(0.000001 AS DECIMAL(6, 6)) AS DECIMAL(18, 6))
    END AS covered_ratio
FROM lake.server_hour
WHERE period = $period
ORDER BY server, hour_start
