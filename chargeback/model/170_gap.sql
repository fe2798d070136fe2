-- Purpose: everything that could not be priced, matched or mapped, counted and named; never silently zero.
-- Grain: none
-- Reads: node_hour, node_hour_cost, posting_charge, charge_span, held_hour, statement_exact, quota_conflict, team_rule, bill_gap, asset_gap, posting_node, posting_capacity, token_hour, token_cost, server_hour

WITH inside AS (
    SELECT * FROM node_hour
    WHERE hour_number >= seconds_of($period_start) // 3600 AND hour_number < seconds_of($period_end) // 3600
),
unpriced AS (
    SELECT
        'unpriced_node' AS kind, n.cluster || '/' || n.node AS subject, min(n.hour_number) AS from_hour,
        max(n.hour_number) + 1 AS to_hour, sum(n.capacity_gpu_microseconds) AS gpu_microseconds,
        NULL AS amount, NULL AS currency, count(*) || ' node-hours in the inventory that no charge pays for' AS reason
    FROM inside AS n
    ANTI JOIN node_hour_cost USING (cluster, node, hour_number)
    GROUP BY n.cluster, n.node
),
unmatched AS (
    SELECT
        'unmatched_charge' AS kind,
        coalesce(s.resource_id, s.service_name, CASE s.kind WHEN 'commitment' THEN s.commitment END, 'no resource') AS subject,
        min(p.hour_number) AS from_hour, max(p.hour_number) + 1 AS to_hour, NULL AS gpu_microseconds,
        from_pico(sum(p.amount_pico)) AS amount, p.currency,
        CASE WHEN any_value(s.kind) = 'commitment' THEN 'use of a commitment by a resource that the inventory does not name: overhead'
             WHEN any_value(s.resource_id) IS NULL THEN 'usage that names no resource: overhead'
             ELSE 'usage of a resource that no inventory row names at that time: overhead' END AS reason
    FROM posting_charge AS p
    JOIN charge_span AS s ON s.snapshot_id = p.charge_snapshot_id AND s.source_row = p.charge_row
    WHERE s.kind IN ('usage', 'commitment') AND ends_with(p.to_account, '/overhead')
    GROUP BY ALL
),
unmapped AS (
    SELECT
        'unmapped_owner' AS kind, owner AS subject, min(hour_number) AS from_hour, max(hour_number) + 1 AS to_hour,
        sum(held_gpu_microseconds) AS gpu_microseconds, NULL AS amount, NULL AS currency,
        'no team named and no rule matches (namespace/workload/user): unattributed' AS reason
    FROM held_hour WHERE team IS NULL AND server IS NULL GROUP BY ALL
),
misplaced AS (
    SELECT
        'holding_outside_inventory' AS kind, coalesce(node, 'pool ' || pool, 'a device') AS subject, min(hour_number) AS from_hour,
        max(hour_number) + 1 AS to_hour, sum(held_gpu_microseconds) AS gpu_microseconds, NULL AS amount, NULL AS currency,
        'held at a time when the inventory does not have it: not priced' AS reason
    FROM held_hour AS h
    WHERE pool IS NULL OR pool NOT IN (SELECT pool FROM node_hour)
    GROUP BY ALL
),
over_held AS (
    SELECT
        'over_held' AS kind, from_account AS subject, min(hour_number) AS from_hour, max(hour_number) + 1 AS to_hour,
        sum(gpu_microseconds) AS gpu_microseconds, from_pico(sum(amount_pico)) AS amount, currency,
        count(*) || ' hours held beyond the capacity: the negative rest is shown as idle' AS reason
    FROM (
        FROM posting_node WHERE ends_with(to_account, '/capacity')
        -- Where nobody held by pool, the pool only passes on what its nodes lack.
        UNION ALL BY NAME FROM posting_capacity AS c
        WHERE ends_with(c.to_account, '/idle') AND EXISTS (
            FROM posting_capacity AS h
            WHERE h.pool = c.pool AND h.hour_number = c.hour_number AND NOT ends_with(h.to_account, '/idle')
        )
    )
    WHERE gpu_microseconds < 0
    GROUP BY from_account, currency
),
unplaced AS (
    SELECT
        'holding_without_capacity' AS kind, 'pool ' || h.pool AS subject, min(h.hour_number) AS from_hour,
        max(h.hour_number) + 1 AS to_hour, sum(h.held_gpu_microseconds) AS gpu_microseconds, NULL AS amount,
        NULL AS currency, 'held by pool while none of it was priced and free of holdings by node: not priced' AS reason
    FROM held_hour AS h
    WHERE h.node IS NULL AND h.held_gpu_microseconds > 0 AND h.pool IN (SELECT pool FROM node_hour)
      AND NOT EXISTS (
          FROM posting_capacity AS c
          WHERE c.pool = h.pool AND c.hour_number = h.hour_number AND NOT ends_with(c.to_account, '/idle')
      )
    GROUP BY h.pool
    UNION ALL
    SELECT
        'holding_without_capacity' AS kind, h.cluster || '/' || h.node AS subject, min(h.hour_number), max(h.hour_number) + 1,
        sum(h.held_gpu_microseconds), NULL, NULL, 'held on a node that has no GPU in the inventory: not priced' AS reason
    FROM held_hour AS h
    JOIN node_hour AS n USING (cluster, node, hour_number)
    WHERE h.is_placed AND h.held_gpu_microseconds > 0 AND n.capacity_gpu_microseconds = 0
    GROUP BY h.cluster, h.node
),
no_team AS (
    SELECT
        'team_without_cost_centre' AS kind, l.team AS subject, NULL AS from_hour, NULL AS to_hour,
        NULL AS gpu_microseconds, sum(l.exact_amount) AS amount, l.currency,
        'the team files do not name it: no cost centre on its lines' AS reason
    FROM statement_exact AS l
    WHERE EXISTS (FROM team_rule) AND l.team NOT IN (SELECT team FROM team_rule)
    GROUP BY ALL
),
conflict AS (
    SELECT
        'quota_conflict' AS kind, pool || ' ' || other_source AS subject, min(conflict_from_s) // 3600 AS from_hour,
        (max(conflict_to_s) + 3599) // 3600 AS to_hour, NULL AS gpu_microseconds, NULL AS amount, NULL AS currency,
        count(DISTINCT team) || ' teams whose quota differs from ' || any_value(source) || ', which decides' AS reason
    FROM quota_conflict GROUP BY pool, other_source
),
-- Cost of shared model servers that no team answers for by its tokens, by the reason.
served AS (
    SELECT
        CASE kind WHEN 'tenant' THEN 'tenant_without_team' WHEN 'unreported' THEN 'tokens_unreported'
             WHEN 'unknown' THEN 'server_without_tokens' WHEN 'idle' THEN 'idle_server_without_team'
             WHEN 'gap' THEN CASE WHEN amount_pico < 0 THEN 'gateway_over_engine' ELSE 'tokens_outside_gateway' END
        END AS kind,
        server || CASE WHEN kind IN ('tenant', 'unreported') THEN ' ' || coalesce(tenant, '(no tenant)') ELSE '' END AS subject,
        hour_number, gpu_microseconds, amount_pico, currency
    FROM token_cost
    WHERE team IS NULL AND (amount_pico <> 0 OR kind = 'unreported')
),
unserved AS (
    SELECT
        kind, subject, min(hour_number) AS from_hour, max(hour_number) + 1 AS to_hour,
        sum(gpu_microseconds) AS gpu_microseconds, from_pico(sum(amount_pico)) AS amount, currency,
        CASE kind
            WHEN 'tenant_without_team' THEN 'tokens of a tenant that is no team and that no rule of users matches: unattributed'
            WHEN 'tokens_unreported' THEN 'requests whose tokens were not reported, at the mean of the hour: unattributed'
            WHEN 'server_without_tokens' THEN 'no tokens known to divide these hours by: unattributed'
            WHEN 'idle_server_without_team' THEN 'hours without a token of a server that no team owns: unattributed'
            WHEN 'gateway_over_engine' THEN 'gateways report more tokens than the engine counted: a negative rest, shown as unattributed'
            ELSE 'tokens that the engine counted and no gateway reported: unattributed'
        END AS reason
    FROM served
    GROUP BY kind, subject, currency
),
no_server AS (
    SELECT
        'tokens_without_server' AS kind, t.server AS subject, min(t.hour_number) AS from_hour,
        max(t.hour_number) + 1 AS to_hour, NULL AS gpu_microseconds, NULL AS amount, NULL AS currency,
        'tokens in hours in which no configured server of that name held anything that is priced' AS reason
    FROM token_hour AS t
    ANTI JOIN server_hour AS h USING (server, hour_number)
    WHERE t.hour_number >= seconds_of($period_start) // 3600 AND t.hour_number < seconds_of($period_end) // 3600
    GROUP BY t.server
)
SELECT
    $period AS period, kind, subject, hour_at(from_hour) AS gap_from, hour_at(to_hour) AS gap_to,
    CAST(gpu_microseconds AS BIGINT) AS gpu_microseconds, CAST(amount AS DECIMAL(38, 12)) AS amount, currency, reason
FROM (
    FROM unpriced UNION ALL BY NAME FROM unmatched UNION ALL BY NAME FROM unmapped UNION ALL BY NAME FROM misplaced
    UNION ALL BY NAME FROM over_held UNION ALL BY NAME FROM unplaced
    UNION ALL BY NAME FROM bill_gap UNION ALL BY NAME FROM asset_gap UNION ALL BY NAME FROM no_team
    UNION ALL BY NAME FROM conflict UNION ALL BY NAME FROM unserved UNION ALL BY NAME FROM no_server
)
