-- Purpose: each server-hour laid out in shares of its cost: tenants by their weighted tokens, then what has no tokens
--   (`unreported`), what only the engine saw (`gap`), or the hour as a whole where nothing divides it (`idle`, `unknown`).
-- Grain: server, hour_number, kind, tenant, model
-- Reads: server_hour, token_hour

WITH share AS (
    SELECT
        h.server, h.hour_number, h.basis, CASE WHEN t.is_reported THEN 'tenant' ELSE 'unreported' END AS kind, t.tenant,
        t.model, CASE WHEN t.is_reported THEN t.team END AS team, t.uncached_input_tokens, t.cached_input_tokens,
        t.output_tokens, t.requests,
        CASE WHEN t.is_reported THEN t.weight
             WHEN h.basis = 'gateway' AND h.mean_requests > 0
             THEN greatest(coalesce(t.worked_requests, 0), 0) * h.mean_weight // h.mean_requests
             ELSE 0 END AS weight
    FROM server_hour AS h
    JOIN token_hour AS t USING (server, hour_number)
    UNION ALL BY NAME
    SELECT
        server, hour_number, basis, 'gap' AS kind,
        engine_input_tokens - coalesce(engine_cached_input_tokens, 0) - coalesce(uncached_input_tokens, 0) AS uncached_input_tokens,
        coalesce(engine_cached_input_tokens, 0) - coalesce(cached_input_tokens, 0) AS cached_input_tokens,
        engine_output_tokens - coalesce(output_tokens, 0) AS output_tokens, gap_weight AS weight
    FROM server_hour
    WHERE basis = 'engine'
      AND (gap_weight <> 0 OR engine_input_tokens <> coalesce(uncached_input_tokens + cached_input_tokens, 0)
           OR engine_output_tokens <> coalesce(output_tokens, 0)
           OR coalesce(engine_cached_input_tokens, 0) <> coalesce(cached_input_tokens, 0))
    UNION ALL BY NAME
    SELECT server, hour_number, basis, basis AS kind, 1 AS weight FROM server_hour WHERE basis IN ('idle', 'unknown')
),
-- What weighs nothing stays listed, for its requests; the gap comes last, so that a negative one ends at the whole.
weighed AS (
    SELECT
        * REPLACE (CASE WHEN basis IN ('idle', 'unknown') AND kind <> basis THEN 0 ELSE weight END AS weight)
    FROM share
)
SELECT
    *, CAST(sum(weight) OVER line AS HUGEINT) AS weight_to,
    CAST(sum(weight) OVER (PARTITION BY server, hour_number) AS HUGEINT) AS weight_all
FROM weighed
WINDOW line AS (
    PARTITION BY server, hour_number ORDER BY kind <> 'tenant', kind <> 'unreported', tenant NULLS LAST, model NULLS LAST
)
