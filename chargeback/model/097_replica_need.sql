-- Purpose: how many replicas of each model server would have been enough in the period. The load of a window is the sum over the
--   replicas of a group that were seen in it: of what ran, and of the shares of cache in use. A p95 is the smallest value that
--   is not passed in 95 % of the watched time: a window weighs what was observed of it.
--   A group has too many replicas when the p95 of each replica is below both limits of the configuration (running requests
--   over slots, cache in use). As many are needed as keep the p95 of the group's load, shared alike, at or below both limits,
--   and one at least. Slots are those of the configuration, else the most requests that were ever seen to run on a replica of
--   the group: no more than there are. Nothing is said of a group that was not watched, with two replicas or more, for as
--   long as configured; a group that never had two has no row.
-- Grain: group_number
-- Reads: replica_window, server_rule, setting

WITH replica_running AS (
    SELECT group_number, replica_number, running_milli, sum(observed_ms) AS observed_ms FROM replica_window GROUP BY ALL
),
replica_running_laid AS (
    SELECT
        *, sum(observed_ms) OVER (PARTITION BY replica_number ORDER BY running_milli) AS to_ms,
        sum(observed_ms) OVER (PARTITION BY replica_number) AS whole_ms
    FROM replica_running
),
replica_kv AS (
    SELECT group_number, replica_number, kv_millionths, sum(observed_ms) AS observed_ms FROM replica_window GROUP BY ALL
),
replica_kv_laid AS (
    SELECT
        *, sum(observed_ms) OVER (PARTITION BY replica_number ORDER BY kv_millionths) AS to_ms,
        sum(observed_ms) OVER (PARTITION BY replica_number) AS whole_ms
    FROM replica_kv
),
-- Of a replica the p95 is the smallest of the values that are not passed in 95 % of the time.
busiest AS (
    SELECT group_number, CAST(max(p95) AS HUGEINT) AS replica_running_milli
    FROM (
        SELECT group_number, replica_number, min(running_milli) AS p95
        FROM replica_running_laid WHERE 100 * to_ms >= 95 * whole_ms GROUP BY ALL
    )
    GROUP BY group_number
),
fullest AS (
    SELECT group_number, CAST(max(p95) AS HUGEINT) AS replica_kv_millionths
    FROM (
        SELECT group_number, replica_number, min(kv_millionths) AS p95
        FROM replica_kv_laid WHERE 100 * to_ms >= 95 * whole_ms GROUP BY ALL
    )
    GROUP BY group_number
),
load AS (
    SELECT
        group_number, from_ms, count(*) AS replicas, max(observed_ms) AS observed_ms, sum(running_milli) AS running_milli,
        sum(kv_millionths) AS kv_millionths, count(kv_millionths) = count(*) AS has_kv
    FROM replica_window
    GROUP BY ALL
),
laid AS (
    SELECT
        *, sum(observed_ms) OVER (PARTITION BY group_number ORDER BY running_milli) AS running_to_ms,
        sum(observed_ms) OVER (PARTITION BY group_number ORDER BY kv_millionths) AS kv_to_ms,
        sum(observed_ms) OVER (PARTITION BY group_number) AS whole_ms
    FROM load
),
judged AS (
    SELECT
        group_number, max(replicas) AS replicas,
        CAST(coalesce(sum(observed_ms) FILTER (WHERE replicas >= 2), 0) AS BIGINT) AS observed_ms,
        CAST(min(running_milli) FILTER (WHERE 100 * running_to_ms >= 95 * whole_ms) AS HUGEINT) AS running_milli,
        CAST(min(kv_millionths) FILTER (WHERE 100 * kv_to_ms >= 95 * whole_ms) AS HUGEINT) AS kv_millionths,
        bool_and(has_kv) AS has_kv
    FROM laid
    GROUP BY group_number
),
named AS (
    SELECT
        group_number, any_value(server) AS server, any_value(role) AS role, any_value(models) AS models,
        CAST(max(running_max_requests) AS HUGEINT) AS most_running
    FROM replica_window
    GROUP BY group_number
),
limited AS (
    SELECT
        j.*, n.server, n.role, n.models, b.replica_running_milli, f.replica_kv_millionths, s.spare_kv_millionths,
        coalesce(r.max_running_requests, nullif(n.most_running, 0)) AS slots,
        slots * s.spare_running_millionths AS running_limit_millionths,
        CASE WHEN j.observed_ms < s.spare_observed_days * 86400000
             THEN 'watched with two replicas or more for less than ' || s.spare_observed_days || ' x 24 hours'
             WHEN slots IS NULL THEN 'slots unknown: no request was seen to run and no max_running_requests is configured'
             WHEN NOT j.has_kv THEN 'the engine does not show at all times how much of its cache is in use'
        END AS reason
    FROM judged AS j
    JOIN named AS n USING (group_number)
    JOIN busiest AS b USING (group_number)
    JOIN fullest AS f USING (group_number)
    LEFT JOIN server_rule AS r ON r.server = n.server
    CROSS JOIN setting AS s
    WHERE j.replicas >= 2
)
SELECT
    group_number, server, role, models, replicas, observed_ms, slots, running_milli, CASE WHEN has_kv THEN kv_millionths END AS kv_millionths,
    reason,
    CASE WHEN reason IS NOT NULL THEN NULL
         WHEN replica_running_milli * 1000 >= running_limit_millionths OR replica_kv_millionths >= spare_kv_millionths
         THEN replicas
         ELSE CAST(greatest(
             1, (1000 * running_milli + running_limit_millionths - 1) // running_limit_millionths,
             (limited.kv_millionths + spare_kv_millionths - 1) // spare_kv_millionths
         ) AS BIGINT) END AS needed_replicas
FROM limited
