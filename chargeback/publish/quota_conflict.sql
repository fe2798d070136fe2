-- Purpose: quota files that disagree, with times and whole GPUs.
-- Grain: none
-- Reads: quota_conflict

SELECT
    $period AS period, to_timestamp(conflict_from_s) AS conflict_from, to_timestamp(conflict_to_s) AS conflict_to,
    * REPLACE (
        CAST(gpus * 0.000001 AS DECIMAL(18, 6)) AS gpus, CAST(other_gpus * 0.000001 AS DECIMAL(18, 6)) AS other_gpus
    )
FROM quota_conflict
