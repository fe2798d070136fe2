-- Purpose: what a token of each kind weighs on each server, in millionths: as configured, or (weight basis `measured`) with
--   the output weight that the engine's own prefill and decode time of the period gives: an uncached input token takes
--   prefill / uncached tokens, an output token decode / output tokens, and only their ratio counts.
--   Basis `measured` is time of devices, where the engine measures it. Else it is `advisory`: time of requests, of which those
--   in one batch share a second, so decode counts for more than it takes. Times are sums over requests or steps of these
--   phases, never a sum of per-request means (which understates decode a thousandfold).
--   Weights only divide a cost; no weight ever changes a total.
-- Grain: server
-- Reads: server_rule, setting, engine_tokens

WITH counted AS (
    SELECT
        server, b.basis, b.basis_order, CAST(sum(input_tokens - coalesce(cached_input_tokens, 0)) AS HUGEINT) AS uncached_tokens,
        CAST(sum(output_tokens) AS HUGEINT) AS output_tokens,
        CAST(sum(b.prefill_ms) AS HUGEINT) AS prefill_ms, CAST(sum(b.decode_ms) AS HUGEINT) AS decode_ms
    FROM engine_tokens AS e
    CROSS JOIN LATERAL (
        VALUES ('measured', 1, e.prefill_busy_ms, e.decode_busy_ms), ('advisory', 2, e.prefill_ms, e.decode_ms)
    ) AS b(basis, basis_order, prefill_ms, decode_ms)
    WHERE hour_number >= seconds_of($period_start) // 3600 AND hour_number < seconds_of($period_end) // 3600
      AND input_tokens IS NOT NULL AND output_tokens IS NOT NULL
      AND b.prefill_ms IS NOT NULL AND b.decode_ms IS NOT NULL
    GROUP BY server, b.basis, b.basis_order
),
measured AS (
    SELECT c.*
    FROM counted AS c, setting AS s
    WHERE s.weight_basis = 'measured' AND s.input_weight > 0
      AND least(c.uncached_tokens, c.output_tokens, c.prefill_ms, c.decode_ms) > 0
    QUALIFY row_number() OVER (PARTITION BY c.server ORDER BY c.basis_order) = 1
)
SELECT
    r.server, CAST(s.input_weight AS HUGEINT) AS input_weight, CAST(s.cached_input_weight AS HUGEINT) AS cached_input_weight,
    CASE WHEN m.server IS NULL THEN CAST(s.output_weight AS HUGEINT)
         -- Rounded half up to a millionth.
         ELSE (2 * s.input_weight * m.decode_ms * m.uncached_tokens + m.prefill_ms * m.output_tokens)
              // (2 * m.prefill_ms * m.output_tokens) END AS output_weight,
    coalesce(m.basis, 'fixed') AS basis
FROM (SELECT DISTINCT server FROM server_rule) AS r
CROSS JOIN setting AS s
LEFT JOIN measured AS m USING (server)
