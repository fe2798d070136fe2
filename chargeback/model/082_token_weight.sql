-- Purpose: what a token of each kind weighs on each server, in millionths: as configured, or (basis `measured`) with the
--   output weight that the engine's own prefill and decode time of the period gives: an uncached input token takes
--   prefill / uncached tokens, an output token decode / output tokens, and only their ratio counts. Times are sums over
--   requests or steps of these phases, never a sum of per-request means (which understates decode a thousandfold).
--   Weights only divide a cost; no weight ever changes a total.
-- Grain: server
-- Reads: server_rule, setting, engine_tokens

WITH phase AS (
    SELECT
        server, CAST(sum(input_tokens - coalesce(cached_input_tokens, 0)) AS HUGEINT) AS uncached_tokens,
        CAST(sum(output_tokens) AS HUGEINT) AS output_tokens,
        CAST(sum(prefill_ms) AS HUGEINT) AS prefill_ms, CAST(sum(decode_ms) AS HUGEINT) AS decode_ms
    FROM engine_tokens
    WHERE hour_number >= seconds_of($period_start) // 3600 AND hour_number < seconds_of($period_end) // 3600
      AND input_tokens IS NOT NULL AND output_tokens IS NOT NULL AND prefill_ms IS NOT NULL AND decode_ms IS NOT NULL
    GROUP BY server
),
measured AS (
    SELECT p.*
    FROM phase AS p, setting AS s
    WHERE s.weight_basis = 'measured' AND s.input_weight > 0
      AND least(p.uncached_tokens, p.output_tokens, p.prefill_ms, p.decode_ms) > 0
)
SELECT
    r.server, CAST(s.input_weight AS HUGEINT) AS input_weight, CAST(s.cached_input_weight AS HUGEINT) AS cached_input_weight,
    CASE WHEN m.server IS NULL THEN CAST(s.output_weight AS HUGEINT)
         -- Rounded half up to a millionth.
         ELSE (2 * s.input_weight * m.decode_ms * m.uncached_tokens + m.prefill_ms * m.output_tokens)
              // (2 * m.prefill_ms * m.output_tokens) END AS output_weight,
    CASE WHEN m.server IS NULL THEN 'fixed' ELSE 'measured' END AS basis
FROM (SELECT DISTINCT server FROM server_rule) AS r
CROSS JOIN setting AS s
LEFT JOIN measured AS m USING (server)
