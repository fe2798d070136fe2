-- Purpose: what each device did, hour by hour: the sums of the windows that agents sent. Energy belongs to a board and
--   stands in its row only, so plain sums over devices are right.
-- Grain: cluster, node, device, hour_number
-- Reads: device_window

SELECT
    cluster, node, device, seconds_of(window_start) // 3600 AS hour_number,
    CAST(sum(window_ms) AS BIGINT) AS window_ms,
    CAST(sum(observed_ms) AS BIGINT) AS observed_ms,
    CAST(sum(busy_observed_ms) AS BIGINT) AS busy_observed_ms,
    CAST(sum(busy_ms) AS BIGINT) AS busy_ms,
    CAST(sum(profile_observed_ms) AS BIGINT) AS profile_observed_ms,
    CAST(sum(sm_ms) AS BIGINT) AS sm_ms,
    CAST(sum(tensor_ms) AS BIGINT) AS tensor_ms,
    CAST(sum(dram_ms) AS BIGINT) AS dram_ms,
    CAST(sum(memory_observed_ms) AS BIGINT) AS memory_observed_ms,
    CAST(sum(memory_used_mebibyte_ms) AS BIGINT) AS memory_used_mebibyte_ms,
    max(memory_used_max_mebibytes) AS memory_used_max_mebibytes,
    CAST(sum(energy_millijoules) AS BIGINT) AS energy_millijoules,
    CAST(sum(window_ms) FILTER (WHERE energy_millijoules IS NOT NULL) AS BIGINT) AS energy_window_ms,
    CAST(bit_or(quality_bits) AS INTEGER) AS quality_bits
FROM device_window
WHERE day BETWEEN seconds_of($period_start) // 86400 AND (seconds_of($period_end) - 1) // 86400
GROUP BY ALL
