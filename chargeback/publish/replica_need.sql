-- Purpose: how many replicas of each model server would have been enough.
-- Grain: none
-- Reads: replica_need

SELECT
    $period AS period, server, role, models, replicas, needed_replicas,
    CAST(slots AS BIGINT) AS slots, CAST(running_milli AS BIGINT) AS running_p95_milli,
    CAST(kv_millionths AS BIGINT) AS kv_p95_millionths, reason
FROM replica_need
