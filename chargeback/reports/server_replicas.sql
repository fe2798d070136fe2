-- Purpose: how many replicas each model server had at most, and how many would have been enough; `reason` says why that is not
--   known.
-- Grain: server, role, models
-- Scope: fleet
-- Reads: replica_need

SELECT server, role, models, replicas, needed_replicas, slots, running_p95_milli, kv_p95_millionths, reason
FROM lake.replica_need
WHERE period = $period
ORDER BY server, role, models
