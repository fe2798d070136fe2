-- Purpose: each pool as a line of segments in which capacity, held and waiting GPUs are constant, to the second.
--   Built by sweeping over every change; hours are marked, so that a segment lies in one hour. In millionths of a GPU.
-- Grain: pool, from_s
-- Reads: node, holder_interval, device, demand

WITH device_place AS (
    SELECT device, cluster, node, valid_from, coalesce(valid_to, 'infinity'::TIMESTAMPTZ) AS valid_to FROM device
),
node_place AS (
    SELECT
        cluster, node, coalesce(pool, 'default') AS pool, valid_from, coalesce(valid_to, 'infinity'::TIMESTAMPTZ) AS valid_to
    FROM node
),
only_cluster AS (
    SELECT node, min(cluster) AS cluster FROM node GROUP BY node
),
seated AS (
    SELECT
        h.gpus, h.pool, coalesce(h.cluster, d.cluster, c.cluster) AS cluster, coalesce(h.node, d.node) AS node,
        greatest(h.held_from, coalesce(d.valid_from, h.held_from)) AS held_from,
        least(h.held_to, coalesce(d.valid_to, h.held_to)) AS held_to
    FROM holder_interval AS h
    LEFT JOIN device_place AS d ON d.device = h.device AND d.valid_from < h.held_to AND d.valid_to > h.held_from
    LEFT JOIN only_cluster AS c ON c.node = coalesce(h.node, d.node)
),
-- A node that changed pools counts where it was at the time; holdings outside the inventory are gaps, not held capacity.
placed AS (
    SELECT
        coalesce(s.pool, n.pool) AS pool, CAST(s.gpus * 1000000 AS BIGINT) AS gpus,
        seconds_of(greatest(s.held_from, coalesce(n.valid_from, s.held_from))) AS from_s,
        seconds_of(least(s.held_to, coalesce(n.valid_to, s.held_to))) AS to_s
    FROM seated AS s
    LEFT JOIN node_place AS n
        ON n.cluster = s.cluster AND n.node = s.node AND n.valid_from < s.held_to AND n.valid_to > s.held_from
    WHERE s.pool IS NOT NULL OR n.pool IS NOT NULL
),
span AS (
    SELECT 'capacity' AS what, coalesce(pool, 'default') AS pool, CAST(gpu_count AS BIGINT) * 1000000 AS gpus,
           seconds_of(valid_from) AS from_s, coalesce(seconds_of(valid_to), seconds_of($period_end)) AS to_s
    FROM node
    UNION ALL BY NAME
    SELECT 'held' AS what, pool, gpus, from_s, to_s FROM placed
    UNION ALL BY NAME
    SELECT 'pending' AS what, pool, CAST(gpus * 1000000 AS BIGINT) AS gpus,
           seconds_of(waited_from) AS from_s, seconds_of(waited_to) AS to_s
    FROM demand
),
clipped AS (
    SELECT what, pool, gpus, greatest(from_s, seconds_of($period_start)) AS from_s, least(to_s, seconds_of($period_end)) AS to_s
    FROM span
    WHERE from_s < seconds_of($period_end) AND to_s > seconds_of($period_start)
),
change AS (
    SELECT pool, from_s AS at_s, what, gpus FROM clipped
    UNION ALL SELECT pool, to_s AS at_s, what, -gpus AS gpus FROM clipped
    UNION ALL
    SELECT p.pool, h.hour_number * 3600 AS at_s, 'hour' AS what, 0 AS gpus
    FROM (SELECT DISTINCT pool FROM clipped) AS p,
         (SELECT unnest(range(seconds_of($period_start) // 3600, seconds_of($period_end) // 3600 + 1)) AS hour_number) AS h
),
step AS (
    SELECT
        pool, at_s,
        sum(gpus) FILTER (WHERE what = 'capacity') AS capacity_change,
        sum(gpus) FILTER (WHERE what = 'held') AS held_change,
        sum(gpus) FILTER (WHERE what = 'pending') AS pending_change
    FROM change GROUP BY ALL
)
SELECT
    pool, at_s AS from_s, lead(at_s) OVER line AS to_s,
    CAST(sum(coalesce(capacity_change, 0)) OVER line AS BIGINT) AS capacity,
    CAST(sum(coalesce(held_change, 0)) OVER line AS BIGINT) AS held,
    CAST(sum(coalesce(pending_change, 0)) OVER line AS BIGINT) AS pending
FROM step
WINDOW line AS (PARTITION BY pool ORDER BY at_s)
QUALIFY to_s IS NOT NULL
