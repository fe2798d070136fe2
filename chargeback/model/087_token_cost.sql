-- Purpose: step 5 of the ledger, in detail: what each share of a server-hour costs, split like everything else (F(end) -
--   F(start) of F(t) = cost * t / all weights), and a tenant's part once more by kind of token.
-- Grain: server, hour_number, kind, tenant, model, owner, currency, pool, gpu_model
-- Reads: server_cost, token_share, token_weight

WITH paid AS (
    SELECT
        c.server, c.hour_number, s.kind, s.tenant, s.model, c.owner, c.currency, c.pool, c.gpu_model,
        CASE WHEN s.kind = 'idle' THEN c.owner ELSE s.team END AS team, s.weight, s.uncached_input_tokens,
        s.cached_input_tokens,
        split_of(c.cost_pico, s.weight_to, s.weight_all) - split_of(c.cost_pico, s.weight_to - s.weight, s.weight_all)
            AS amount_pico,
        CAST(split_of(CAST(c.gpu_microseconds AS HUGEINT), s.weight_to, s.weight_all)
            - split_of(CAST(c.gpu_microseconds AS HUGEINT), s.weight_to - s.weight, s.weight_all) AS BIGINT)
            AS gpu_microseconds
    FROM server_cost AS c
    JOIN token_share AS s USING (server, hour_number)
),
marked AS (
    SELECT
        p.*, w.input_weight * p.uncached_input_tokens AS input_to,
        input_to + w.cached_input_weight * p.cached_input_tokens AS cached_to
    FROM paid AS p
    JOIN token_weight AS w USING (server)
)
SELECT
    * EXCLUDE (weight, uncached_input_tokens, cached_input_tokens, input_to, cached_to),
    CASE WHEN kind = 'tenant' AND weight > 0 THEN split_of(amount_pico, input_to, weight) END AS input_pico,
    CASE WHEN kind = 'tenant' AND weight > 0
         THEN split_of(amount_pico, cached_to, weight) - split_of(amount_pico, input_to, weight) END AS cached_input_pico,
    CASE WHEN kind = 'tenant' AND weight > 0 THEN amount_pico - split_of(amount_pico, cached_to, weight) END AS output_pico
FROM marked
