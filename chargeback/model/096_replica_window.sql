-- Purpose: the load of each replica of a model server, window by window. A replica is one engine index on one node; those of
--   one role that serve the same models (over the period) could stand in for each other: a group. `running_milli` is the mean
--   of what ran in thousandths of a request, rounded up; `kv_millionths` of the fullest cache, NULL where it is not shown. Both
--   are of the time that was observed.
-- Grain: replica_number, from_ms
-- Reads: engine_seen

WITH seen AS (
    SELECT
        server, coalesce(role, 'unified') AS role, model, cluster, node, engine_index, from_ms, running_observed_ms,
        running_max_requests,
        CAST((1000 * running_request_ms + running_observed_ms - 1) // running_observed_ms AS BIGINT) AS running_milli,
        CASE WHEN kv_observed_ms > 0 THEN CAST(CAST(kv_used_ms AS HUGEINT) * 1000000 // kv_observed_ms AS BIGINT) END
            AS kv_millionths
    FROM engine_seen
    WHERE running_observed_ms > 0 AND running_request_ms IS NOT NULL
),
served AS (
    SELECT
        server, role, cluster, node, engine_index,
        array_to_string(list_sort(list(DISTINCT coalesce(model, ''))), ' ') AS models
    FROM seen
    GROUP BY ALL
),
replica AS (
    SELECT
        *, row_number() OVER (ORDER BY server, role, models, cluster, node, engine_index) AS replica_number,
        dense_rank() OVER (ORDER BY server, role, models) AS group_number
    FROM served
),
load AS (
    SELECT
        r.replica_number, s.from_ms, max(s.running_observed_ms) AS observed_ms,
        CAST(sum(s.running_milli) AS BIGINT) AS running_milli, max(s.kv_millionths) AS kv_millionths,
        max(s.running_max_requests) AS running_max_requests
    FROM seen AS s
    JOIN replica AS r
        ON r.server = s.server AND r.role = s.role AND r.cluster IS NOT DISTINCT FROM s.cluster
       AND r.node IS NOT DISTINCT FROM s.node AND r.engine_index IS NOT DISTINCT FROM s.engine_index
    GROUP BY ALL
)
SELECT r.group_number, r.server, r.role, r.models, r.cluster, r.node, l.*
FROM load AS l
JOIN replica AS r USING (replica_number)
