-- Purpose: who used how many tokens of which server in which hour, weighed, with the tenant's team.
--   A row counts as reported when input and output are known and no more input was cached than there was; an unknown
--   cached part is taken as none. Of what is not reported only the requests count. The team is the tenant's name where a
--   team is called so, or that of the first rule that matches users only and is valid at the time.
-- Grain: server, hour_number, tenant, model, is_reported
-- Reads: token_usage, token_weight, team_rule, held_hour

WITH judged AS (
    SELECT
        *, seconds_of(hour_start) // 3600 AS hour_number,
        requests - coalesce(failed_requests, 0) - coalesce(cache_hit_requests, 0) AS worked_requests,
        coalesce(
            input_tokens >= coalesce(cached_input_tokens, 0) AND coalesce(cached_input_tokens, 0) >= 0 AND output_tokens >= 0,
            false
        ) AS is_reported
    FROM token_usage
),
known_team AS (
    SELECT team FROM team_rule UNION SELECT team FROM held_hour WHERE team IS NOT NULL
),
tenant_rule AS (
    SELECT
        t.tenant, r.team, coalesce(seconds_of(r.valid_from), -9000000000000) AS valid_from_s,
        coalesce(seconds_of(r.valid_to), 9000000000000) AS valid_to_s,
        row_number() OVER (ORDER BY r.source_file, r.source_row) AS rule_order
    FROM (SELECT DISTINCT tenant FROM token_usage) AS t
    JOIN team_rule AS r
        ON t.tenant GLOB r.match_user AND r.match_namespace IS NULL AND r.match_workload IS NULL
       AND r.match_account IS NULL AND r.match_label IS NULL
),
summed AS (
    SELECT
        server, hour_number, tenant, model, is_reported,
        CAST(sum(input_tokens - coalesce(cached_input_tokens, 0)) FILTER (WHERE is_reported) AS HUGEINT) AS uncached_input_tokens,
        CAST(sum(coalesce(cached_input_tokens, 0)) FILTER (WHERE is_reported) AS HUGEINT) AS cached_input_tokens,
        CAST(sum(output_tokens) FILTER (WHERE is_reported) AS HUGEINT) AS output_tokens,
        bool_and(cached_input_tokens IS NOT NULL) AS has_cached,
        CAST(sum(requests) AS BIGINT) AS requests, CAST(sum(worked_requests) AS HUGEINT) AS worked_requests
    FROM judged
    GROUP BY ALL
),
resolved AS (
    SELECT s.server, s.hour_number, s.tenant, s.model, s.is_reported, arg_min(r.team, r.rule_order) AS team
    FROM summed AS s
    JOIN tenant_rule AS r
        ON r.tenant = s.tenant AND r.valid_from_s <= s.hour_number * 3600 AND r.valid_to_s > s.hour_number * 3600
    GROUP BY ALL
)
SELECT
    s.*, CASE WHEN s.tenant IN (SELECT team FROM known_team) THEN s.tenant ELSE r.team END AS team,
    w.input_weight * s.uncached_input_tokens + w.cached_input_weight * s.cached_input_tokens
        + w.output_weight * s.output_tokens AS weight
FROM summed AS s
LEFT JOIN token_weight AS w USING (server)
LEFT JOIN resolved AS r
    ON r.server = s.server AND r.hour_number = s.hour_number AND r.tenant = s.tenant
   AND r.model IS NOT DISTINCT FROM s.model AND r.is_reported = s.is_reported
