-- Purpose: who held what, whatever told it: the holdings that were loaded, and what agents saw on their nodes.
--   Agents send holdings cut at window edges; what goes on from one to the next is one interval here. These intervals are
--   numbered by place and time, and name their node themselves, so that the devices that were loaded do not move them.
--   A pod whose workload is not known stands for it: `llm-*` then matches what a rule of workloads means.
-- Grain: snapshot_id, source_row
-- Reads: holding, held_window

WITH piece AS (
    SELECT
        cluster, node, device AS seen_device, gpu_millionths, owner_kind, source, confidence, namespace, workload, pod,
        pod_uid, container, job_id, user_name, conflict, seconds_of(held_from) AS from_s, seconds_of(held_to) AS to_s
    FROM held_window
    WHERE day BETWEEN seconds_of($period_start) // 86400 AND (seconds_of($period_end) - 1) // 86400
),
marked AS (
    SELECT
        *, from_s IS DISTINCT FROM lag(to_s) OVER (
            PARTITION BY cluster, node, seen_device, gpu_millionths, owner_kind, source, confidence, namespace, workload,
                pod, pod_uid, container, job_id, user_name, conflict
            ORDER BY from_s
        ) AS begins
    FROM piece
),
numbered AS (
    SELECT
        *, sum(CAST(begins AS INTEGER)) OVER (
            PARTITION BY cluster, node, seen_device, gpu_millionths, owner_kind, source, confidence, namespace, workload,
                pod, pod_uid, container, job_id, user_name, conflict
            ORDER BY from_s ROWS UNBOUNDED PRECEDING
        ) AS interval_number
    FROM marked
),
joined AS (
    SELECT * EXCLUDE (from_s, to_s, begins), min(from_s) AS from_s, max(to_s) AS to_s FROM numbered GROUP BY ALL
)
SELECT
    'agent' AS snapshot_id,
    row_number() OVER (
        ORDER BY cluster, node, seen_device, from_s, to_s, gpu_millionths, owner_kind, source, confidence, namespace,
            workload, pod, pod_uid, container, job_id, user_name, conflict
    ) AS source_row,
    make_timestamptz(from_s * 1000000) AS held_from, make_timestamptz(to_s * 1000000) AS held_to,
    CAST(CAST(gpu_millionths AS DECIMAL(12, 0)) * 0.000001 AS DECIMAL(18, 6)) AS gpus,
    NULL AS device, node, NULL AS pool, cluster, NULL AS team, namespace, coalesce(workload, pod) AS workload, owner_kind, job_id, user_name, source
FROM joined
UNION ALL BY NAME
SELECT
    snapshot_id, source_row, held_from, held_to, gpus, device, node, pool, cluster, team, namespace, workload, owner_kind,
    job_id, user_name, source
FROM holding
