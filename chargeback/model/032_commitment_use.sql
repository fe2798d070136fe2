-- Purpose: which nodes used an amortised commitment, hour by hour, as time of machines (of GPUs, where it counts those).
--   Usage that names it (as commitment or as capacity reservation) decides, and what the provider's API saw run in it; an
--   hour of an instance counts once, by its consumed hours where the export states them. Without any of these in the period,
--   the nodes of the pool that the commitment names used it. A resource that is no node of the inventory counts without one.
-- Grain: commitment_key, hour_number, cluster, node
-- Reads: commitment_charge, charge_span, reservation_use, node_hour, node

WITH line AS (
    SELECT
        commitment_key, any_value(pool) AS pool, any_value(instance_type) AS instance_type, any_value(counts_gpus) AS counts_gpus,
        min(seconds_of(charge_period_start)) AS from_s, max(seconds_of(charge_period_end)) AS to_s
    FROM commitment_charge WHERE charge_category = 'Usage' GROUP BY commitment_key
),
identified AS (
    SELECT i.id, l.commitment_key
    FROM (
        SELECT commitment AS id FROM charge_span WHERE kind = 'usage' AND commitment <> 'unassigned'
        UNION SELECT reservation AS id FROM charge_span WHERE kind = 'usage' AND reservation IS NOT NULL
        UNION SELECT capacity_reservation_id AS id FROM reservation_use
    ) AS i
    JOIN line AS l ON l.commitment_key = lower(i.id) OR l.commitment_key = lower(split_part(i.id, '/', -1))
),
billed AS (
    SELECT DISTINCT
        i.commitment_key, s.snapshot_id, s.source_row, coalesce(s.node_resource_id, s.resource_id, '') AS resource_id,
        s.span_to_s - s.span_from_s AS span_s,
        coalesce(CAST(s.consumed_hours * 3600000000 AS HUGEINT), (s.span_to_s - s.span_from_s) * 1000000) AS used_all,
        greatest(s.span_from_s, l.from_s) AS from_s, least(s.span_to_s, l.to_s) AS to_s
    FROM charge_span AS s
    JOIN identified AS i ON i.id = s.commitment OR i.id = s.reservation
    JOIN line AS l USING (commitment_key)
    WHERE s.kind = 'usage'
),
seen AS (
    SELECT
        i.commitment_key, u.resource_id, greatest(seconds_of(u.used_from), l.from_s) AS from_s,
        least(seconds_of(u.seen_at), l.to_s) AS to_s
    FROM reservation_use AS u
    JOIN identified AS i ON i.id = u.capacity_reservation_id
    JOIN line AS l USING (commitment_key)
),
cut AS (
    SELECT *, unnest(range(from_s // 3600, (to_s - 1) // 3600 + 1)) AS hour_number
    FROM (FROM billed UNION ALL BY NAME FROM seen)
    WHERE from_s < to_s
),
timed AS (
    SELECT
        commitment_key, resource_id, hour_number, span_s IS NULL AS is_seen,
        coalesce(used_all, 1000000) * CAST(least(hour_number * 3600 + 3600, to_s) - greatest(hour_number * 3600, from_s) AS HUGEINT)
            // coalesce(span_s, 1) AS used_microseconds
    FROM cut
),
by_resource AS (
    SELECT
        t.commitment_key, t.hour_number, t.resource_id,
        greatest(
            least(
                coalesce(sum(t.used_microseconds) FILTER (WHERE NOT t.is_seen), 0),
                (least(t.hour_number * 3600 + 3600, any_value(l.to_s)) - greatest(t.hour_number * 3600, any_value(l.from_s))) * 1000000
            ),
            max(t.used_microseconds) FILTER (WHERE t.is_seen)
        ) AS used_microseconds
    FROM timed AS t
    JOIN line AS l USING (commitment_key)
    GROUP BY t.commitment_key, t.hour_number, t.resource_id
),
seat AS (
    -- An instance that was two nodes within the hour counts for the one that could hold more of it.
    SELECT * FROM node_hour WHERE resource_id IN (SELECT resource_id FROM by_resource)
    QUALIFY row_number() OVER (
        PARTITION BY resource_id, hour_number ORDER BY capacity_gpu_microseconds DESC, cluster, node
    ) = 1
),
named AS (
    SELECT
        r.commitment_key, r.hour_number, s.cluster, s.node, s.pool, s.gpu_model,
        CASE WHEN l.counts_gpus AND s.node IS NOT NULL
             THEN CAST(s.capacity_gpu_microseconds AS HUGEINT) * CAST(r.used_microseconds AS HUGEINT) // 3600000000
             ELSE CAST(r.used_microseconds AS HUGEINT) END AS used_microseconds
    FROM by_resource AS r
    JOIN line AS l USING (commitment_key)
    LEFT JOIN seat AS s ON s.resource_id = r.resource_id AND s.hour_number = r.hour_number
),
valid AS (
    SELECT
        l.commitment_key, n.cluster, n.node, CASE WHEN l.counts_gpus THEN n.gpu_count ELSE 1 END AS parts,
        greatest(seconds_of(n.valid_from), l.from_s) AS from_s, least(coalesce(seconds_of(n.valid_to), l.to_s), l.to_s) AS to_s
    FROM line AS l
    JOIN node AS n
        ON n.pool = l.pool AND coalesce(lower(n.instance_type) = l.instance_type, true)
    WHERE l.commitment_key NOT IN (SELECT commitment_key FROM by_resource)
),
present AS (
    SELECT *, unnest(range(from_s // 3600, (to_s - 1) // 3600 + 1)) AS hour_number FROM valid WHERE from_s < to_s
),
pooled AS (
    SELECT
        p.commitment_key, p.hour_number, h.cluster, h.node, h.pool, h.gpu_model,
        (least(p.hour_number * 3600 + 3600, p.to_s) - greatest(p.hour_number * 3600, p.from_s)) * 1000000 * p.parts
            AS used_microseconds
    FROM present AS p
    JOIN node_hour AS h USING (cluster, node, hour_number)
)
SELECT
    commitment_key, hour_number, cluster, node, any_value(pool) AS pool, any_value(gpu_model) AS gpu_model,
    CAST(sum(used_microseconds) AS BIGINT) AS used_microseconds
FROM (FROM named UNION ALL BY NAME FROM pooled)
GROUP BY commitment_key, hour_number, cluster, node
HAVING sum(used_microseconds) > 0
