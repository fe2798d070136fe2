-- Purpose: what each shared model server cost, in one line: what tenants pay for their tokens, what its owner pays for hours
--   in which nobody asked, what no team answers for; and the mean prices that the reported tokens lead to. Asked for one
--   team: the team's part of it.
-- Grain: server, currency
-- Scope: team
-- Reads: token_cost, token_share

WITH cost AS (
    SELECT
        server, currency, CAST(sum(amount) AS DECIMAL(38, 12)) AS amount,
        CAST(coalesce(sum(amount) FILTER (WHERE kind <> 'idle' AND team IS NOT NULL), 0) AS DECIMAL(38, 12)) AS serving_amount,
        CAST(coalesce(sum(amount) FILTER (WHERE kind = 'idle' AND team IS NOT NULL), 0) AS DECIMAL(38, 12)) AS idle_amount,
        CAST(coalesce(sum(amount) FILTER (WHERE team IS NULL), 0) AS DECIMAL(38, 12)) AS unattributed_amount,
        CAST(sum(input_amount) * 1000000000000 AS HUGEINT) AS input_pico,
        CAST(sum(cached_input_amount) * 1000000000000 AS HUGEINT) AS cached_pico,
        CAST(sum(output_amount) * 1000000000000 AS HUGEINT) AS output_pico,
        CAST(sum(amount) FILTER (WHERE kind = 'tenant') * 1000000000000 AS HUGEINT) AS tenant_pico,
        CAST(sum(gpu_microseconds) AS BIGINT) AS gpu_microseconds
    FROM lake.token_cost
    WHERE period = $period AND ($all_teams OR list_contains($teams, team))
    GROUP BY ALL
),
used AS (
    SELECT
        server, count(DISTINCT tenant) FILTER (WHERE kind = 'tenant') AS tenant_count,
        CAST(sum(uncached_input_tokens) FILTER (WHERE kind = 'tenant') AS BIGINT) AS uncached_input_tokens,
        CAST(sum(cached_input_tokens) FILTER (WHERE kind = 'tenant') AS BIGINT) AS cached_input_tokens,
        CAST(sum(output_tokens) FILTER (WHERE kind = 'tenant') AS BIGINT) AS output_tokens,
        CAST(sum(requests) FILTER (WHERE kind = 'tenant') AS BIGINT) AS requests,
        CAST(sum(requests) FILTER (WHERE kind = 'unreported') AS BIGINT) AS unreported_requests,
        -- A request count that is missing somewhere would make the others look dear.
        bool_and(requests IS NOT NULL) FILTER (WHERE kind = 'tenant') AS has_requests
    FROM lake.token_share
    WHERE period = $period AND ($all_teams OR list_contains($teams, team))
    GROUP BY ALL
)
SELECT
    c.server, c.currency, c.amount, c.serving_amount, c.idle_amount, c.unattributed_amount, c.gpu_microseconds,
    coalesce(u.tenant_count, 0) AS tenant_count, u.uncached_input_tokens, u.cached_input_tokens, u.output_tokens, u.requests,
    u.unreported_requests,
    -- Whole pico-units, so that a price is a decimal and no float.
    CAST(CAST(c.input_pico * 1000000 // nullif(u.uncached_input_tokens, 0) AS DECIMAL(26, 0))
        * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12)) AS input_price_per_million,
    CAST(CAST(c.cached_pico * 1000000 // nullif(u.cached_input_tokens, 0) AS DECIMAL(26, 0))
        * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12)) AS cached_input_price_per_million,
    CAST(CAST(c.output_pico * 1000000 // nullif(u.output_tokens, 0) AS DECIMAL(26, 0))
        * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12)) AS output_price_per_million,
    CASE WHEN u.has_requests
         THEN CAST(CAST(c.tenant_pico // nullif(u.requests, 0) AS DECIMAL(26, 0))
            * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12))
    END AS price_per_request
FROM cost AS c
LEFT JOIN used AS u USING (server)
ORDER BY c.currency, c.server
