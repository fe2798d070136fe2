-- Purpose: what a build publishes of the devices' own meters.
-- Grain: see the table
-- Reads: nothing

CREATE TABLE lake.device_hour (    -- device, hour: the sums of its windows
    period VARCHAR, cluster VARCHAR, node VARCHAR, device VARCHAR, hour_start TIMESTAMPTZ,
    window_ms BIGINT, observed_ms BIGINT, busy_observed_ms BIGINT, busy_ms BIGINT,
    profile_observed_ms BIGINT, sm_ms BIGINT, tensor_ms BIGINT, dram_ms BIGINT,
    memory_observed_ms BIGINT, memory_used_mebibyte_ms BIGINT, memory_used_max_mebibytes INTEGER,
    energy_millijoules BIGINT, quality_bits INTEGER
);
ALTER TABLE lake.device_hour SET PARTITIONED BY (period);
