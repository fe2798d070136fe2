-- Purpose: what the tokens cost, hour by hour, over all pools of a server.
-- Grain: none
-- Reads: token_cost

SELECT
    $period AS period, hour_at(hour_number) AS hour_start, server, kind, tenant, model, team, currency,
    from_pico(sum(amount_pico)) AS amount, from_pico(sum(input_pico)) AS input_amount,
    from_pico(sum(cached_input_pico)) AS cached_input_amount, from_pico(sum(output_pico)) AS output_amount,
    CAST(sum(gpu_microseconds) AS BIGINT) AS gpu_microseconds
FROM token_cost
GROUP BY ALL
