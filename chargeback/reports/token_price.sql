-- Purpose: what tokens cost: per server, model and tenant the cost, the tokens and the prices they lead to; an idle server,
--   tokens that nobody reported and what only the engine saw each on a line of its own (`kind`), in no tenant's price.
--   A price is the cost of that kind of token over its count: the mean over the hours in which the tenant used it.
-- Grain: server, kind, model, tenant, team, currency
-- Scope: team
-- Reads: token_cost, token_share

WITH cost AS (
    SELECT
        server, kind, model, tenant, team, currency, CAST(sum(amount) AS DECIMAL(38, 12)) AS amount,
        CAST(sum(input_amount) AS DECIMAL(38, 12)) AS input_amount,
        CAST(sum(cached_input_amount) AS DECIMAL(38, 12)) AS cached_input_amount,
        CAST(sum(output_amount) AS DECIMAL(38, 12)) AS output_amount, CAST(sum(gpu_microseconds) AS BIGINT) AS gpu_microseconds
    FROM lake.token_cost
    WHERE period = $period AND ($all_teams OR list_contains($teams, team))
    GROUP BY ALL
),
used AS (
    SELECT
        server, kind, model, tenant, team,
        CAST(sum(uncached_input_tokens) AS BIGINT) AS uncached_input_tokens,
        CAST(sum(cached_input_tokens) AS BIGINT) AS cached_input_tokens, CAST(sum(output_tokens) AS BIGINT) AS output_tokens,
        CAST(sum(requests) AS BIGINT) AS requests,
        -- A request count that is missing somewhere would make the others look dear.
        count(requests) = count(*) AS has_requests
    FROM lake.token_share
    WHERE period = $period
    GROUP BY ALL
),
joined AS (
    SELECT
        c.*, u.uncached_input_tokens, u.cached_input_tokens, u.output_tokens, u.requests, u.has_requests,
        CAST(c.amount * 1000000000000 AS HUGEINT) AS pico, CAST(c.input_amount * 1000000000000 AS HUGEINT) AS input_pico,
        CAST(c.cached_input_amount * 1000000000000 AS HUGEINT) AS cached_pico,
        CAST(c.output_amount * 1000000000000 AS HUGEINT) AS output_pico
    FROM cost AS c
    LEFT JOIN used AS u
        ON u.server = c.server AND u.kind = c.kind AND u.model IS NOT DISTINCT FROM c.model
       AND u.tenant IS NOT DISTINCT FROM c.tenant AND u.team IS NOT DISTINCT FROM c.team
)
SELECT
    server, kind, model, tenant, team, currency, amount, input_amount, cached_input_amount, output_amount, gpu_microseconds,
    uncached_input_tokens, cached_input_tokens, output_tokens, requests,
    -- Whole pico-units, so that a price is a decimal and no float.
    CAST(CAST(input_pico * 1000000 // nullif(uncached_input_tokens, 0) AS DECIMAL(26, 0))
        * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12)) AS input_price_per_million,
    CAST(CAST(cached_pico * 1000000 // nullif(cached_input_tokens, 0) AS DECIMAL(26, 0))
        * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12)) AS cached_input_price_per_million,
    CAST(CAST(output_pico * 1000000 // nullif(output_tokens, 0) AS DECIMAL(26, 0))
        * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12)) AS output_price_per_million,
    CASE WHEN kind = 'tenant' AND has_requests
         THEN CAST(CAST(pico // nullif(requests, 0) AS DECIMAL(26, 0)) * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12))
    END AS price_per_request
FROM joined
ORDER BY currency, server, kind <> 'tenant', kind, model NULLS LAST, tenant NULLS LAST, team NULLS LAST
