-- Purpose: what could be held: each node's GPU time in each hour of the period, and of the boundary hours that charges
--   of this period reach into (an invoice month in another time zone).
--   A node whose inventory changes within an hour keeps the pool and model it had for most of it, of equals the later.
-- Grain: cluster, node, hour_number
-- Reads: node, charge_span

WITH reached AS (
    SELECT
        least(seconds_of($period_start), min(s.span_from_s)) AS from_s,
        greatest(seconds_of($period_end), max(s.span_to_s)) AS to_s
    FROM charge_span AS s
    WHERE s.node_resource_id IS NOT NULL
),
bounds AS (
    -- Three days on either side hold every time zone's boundary hours; older usage is a matter of corrections.
    SELECT
        greatest(coalesce(from_s, seconds_of($period_start)), seconds_of($period_start) - 259200) AS from_s,
        least(coalesce(to_s, seconds_of($period_end)), seconds_of($period_end) + 259200) AS to_s
    FROM reached
),
valid AS (
    SELECT
        n.cluster, n.node, coalesce(n.pool, 'default') AS pool, n.gpu_model, n.resource_id, n.gpu_count,
        greatest(seconds_of(n.valid_from), b.from_s) AS from_s,
        least(coalesce(seconds_of(n.valid_to), b.to_s), b.to_s) AS to_s
    FROM node AS n, bounds AS b
),
pieces AS (
    SELECT *, unnest(range(from_s // 3600, (to_s - 1) // 3600 + 1)) AS hour_number
    FROM valid WHERE from_s < to_s
),
timed AS (
    SELECT
        *, least(hour_number * 3600 + 3600, to_s) - greatest(hour_number * 3600, from_s) AS seconds,
        {'seconds': seconds, 'from_s': from_s} AS rank
    FROM pieces
)
SELECT
    cluster, node, hour_number,
    arg_max(pool, rank) AS pool,
    arg_max_null(gpu_model, rank) AS gpu_model,
    arg_max_null(resource_id, rank) AS resource_id,
    CAST(sum(gpu_count * seconds * 1000000) AS BIGINT) AS capacity_gpu_microseconds
FROM timed
GROUP BY ALL
