-- Purpose: what part of a server's work in an hour reached nobody, in weighted tokens: prompts and generated tokens that the
--   engine worked on and that no finished request got (callers that went away, work that was thrown away and done again).
--   Tokens under way at an hour's end count when they finish: of those not finished so far, those are lost that no later hour
--   finishes. Lost prompts weigh what the hour's prompts weigh on average, cached ones included. Where tokens count only when
--   their request ends, nothing tells of lost ones; prompts are judged only beside generated tokens.
--   Where prefill and decode run apart, prompts are those of prefill and generated tokens those of decode.
-- Grain: server, hour_number
-- Reads: engine_seen, token_weight

WITH node_hour AS (
    SELECT
        server, cluster, node, from_ms // 3600000 AS hour_number, bool_or(is_at_finish) AS is_at_finish,
        bool_or(role IS DISTINCT FROM 'prefill') AS has_decode, bool_or(role IS DISTINCT FROM 'decode') AS has_prefill,
        sum(generation_tokens) FILTER (WHERE role IS DISTINCT FROM 'prefill') AS generated,
        sum(finished_generation_tokens) FILTER (WHERE role IS DISTINCT FROM 'prefill') AS finished_generated,
        sum(prompt_tokens) FILTER (WHERE role IS DISTINCT FROM 'decode') AS prompts,
        sum(prompt_cached_tokens) FILTER (WHERE role IS DISTINCT FROM 'decode') AS cached,
        sum(finished_prompt_tokens) FILTER (WHERE role IS DISTINCT FROM 'decode') AS finished_prompts
    FROM engine_seen
    GROUP BY ALL
),
server_hour AS (
    SELECT
        server, hour_number, CAST(sum(generated) AS HUGEINT) AS generated, CAST(coalesce(sum(prompts), 0) AS HUGEINT) AS prompts,
        CAST(least(coalesce(sum(cached), 0), coalesce(sum(prompts), 0)) AS HUGEINT) AS cached,
        CAST(sum(finished_generated) AS HUGEINT) AS finished_generated,
        CAST(sum(finished_prompts) AS HUGEINT) AS finished_prompts,
        coalesce(bool_and(prompts IS NOT NULL AND finished_prompts IS NOT NULL) FILTER (WHERE has_prefill), false)
            AS tells_prompts
    FROM node_hour
    GROUP BY server, hour_number
    HAVING bool_and(generated IS NOT NULL AND finished_generated IS NOT NULL AND NOT is_at_finish) FILTER (WHERE has_decode)
),
unfinished AS (
    SELECT
        *, sum(generated - finished_generated) OVER so_far AS generated_so_far,
        sum(CASE WHEN tells_prompts THEN prompts - finished_prompts ELSE 0 END) OVER so_far AS prompts_so_far
    FROM server_hour
    WINDOW so_far AS (PARTITION BY server ORDER BY hour_number)
),
lost AS (
    SELECT
        *, min(generated_so_far) OVER onward AS generated_lost_to, min(prompts_so_far) OVER onward AS prompts_lost_to
    FROM unfinished
    WINDOW onward AS (PARTITION BY server ORDER BY hour_number ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
),
counted AS (
    SELECT
        server, hour_number, generated, prompts, cached,
        CAST(generated_lost_to - coalesce(lag(generated_lost_to) OVER by_hour, least(generated_lost_to, 0)) AS HUGEINT)
            AS lost_generated,
        CAST(prompts_lost_to - coalesce(lag(prompts_lost_to) OVER by_hour, least(prompts_lost_to, 0)) AS HUGEINT) AS lost_prompts
    FROM lost
    WINDOW by_hour AS (PARTITION BY server ORDER BY hour_number)
)
SELECT
    c.server, c.hour_number, lost_generated, lost_prompts,
    w.input_weight * (prompts - cached) + w.cached_input_weight * cached AS prompt_weight,
    prompt_weight + w.output_weight * generated AS made_weight,
    w.output_weight * lost_generated + CASE WHEN prompts > 0 THEN prompt_weight * lost_prompts // prompts ELSE 0 END AS lost_weight
FROM counted AS c
JOIN token_weight AS w USING (server)
