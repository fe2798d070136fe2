-- Purpose: what node agents send, as whole numbers. Windows and holdings lie in files of one day, sorted by device and
--   time: `day` counts days since 1970, `dh` is device_no * 24 + hour of the day, `second` is the second of the day.
-- Grain: see each table
-- Reads: nothing

CREATE TABLE lake.device_number (  -- a device on a node, as a small number; given once and never changed
    device_no INTEGER, cluster VARCHAR, node VARCHAR, device VARCHAR
);

CREATE TABLE lake.seen_device (    -- device, node, seen_from_second: what a device is, from then until the next such row
    cluster VARCHAR, node VARCHAR, device VARCHAR, seen_from_second BIGINT, kind VARCHAR, parent VARCHAR, slot VARCHAR,
    vendor VARCHAR, model VARCHAR, architecture VARCHAR, driver VARCHAR, pci_bus_id VARCHAR, serial VARCHAR,
    profile VARCHAR, memory_mebibytes INTEGER
);

CREATE TABLE lake.device_window (  -- device, window, batch: integrals and maxima over the window
    day INTEGER, dh INTEGER, second INTEGER,
    window_ms INTEGER, observed_ms INTEGER, state VARCHAR,
    busy_observed_ms INTEGER, busy_ms INTEGER,
    profile_observed_ms INTEGER, sm_ms INTEGER, occupancy_ms INTEGER, tensor_ms INTEGER, dram_ms INTEGER,
    memory_observed_ms INTEGER, memory_used_mebibyte_ms BIGINT, memory_used_max_mebibytes INTEGER,
    power_observed_ms INTEGER, power_microjoules BIGINT, power_max_milliwatts INTEGER, energy_millijoules BIGINT,
    sm_clock_max_megahertz INTEGER, temperature_max_celsius INTEGER, memory_temperature_max_celsius INTEGER,
    temperature_margin_min_celsius INTEGER,
    throttle_bits BIGINT, throttle_power_nanoseconds BIGINT, throttle_thermal_nanoseconds BIGINT,
    ecc_corrected_errors BIGINT, ecc_uncorrected_errors BIGINT,
    remapped_corrected_rows INTEGER, remapped_uncorrected_rows INTEGER, remap_is_pending BOOLEAN,
    remap_has_failed BOOLEAN, retired_pages INTEGER,
    pcie_tx_bytes BIGINT, pcie_rx_bytes BIGINT, pcie_replay_events BIGINT,
    nvlink_tx_bytes BIGINT, nvlink_rx_bytes BIGINT, quality_bits INTEGER, driver_epoch INTEGER
);
ALTER TABLE lake.device_window SET PARTITIONED BY (day);
ALTER TABLE lake.device_window SET SORTED BY (dh ASC, second ASC);

CREATE TABLE lake.held_window (    -- device, holder, interval, batch: who held how much of a device
    day INTEGER, dh INTEGER, second INTEGER, seconds INTEGER, cluster VARCHAR, node VARCHAR,
    gpu_millionths INTEGER, owner_kind VARCHAR, source VARCHAR, confidence VARCHAR, namespace VARCHAR,
    workload VARCHAR, pod VARCHAR, pod_uid VARCHAR, container VARCHAR, job_id VARCHAR, user_name VARCHAR,
    conflict VARCHAR
);
ALTER TABLE lake.held_window SET PARTITIONED BY (day);
ALTER TABLE lake.held_window SET SORTED BY (dh ASC, second ASC);

CREATE TABLE lake.device_event (   -- node, event_id: something that happened; the same event read again is not stored again
    day INTEGER, cluster VARCHAR, node VARCHAR, event_id VARCHAR, event_microsecond BIGINT, source VARCHAR,
    code_space VARCHAR, code BIGINT, severity VARCHAR, device VARCHAR, pci_bus_id VARCHAR, fault_class VARCHAR,
    text VARCHAR, pid INTEGER, gpu_instance_id INTEGER, compute_instance_id INTEGER
);
ALTER TABLE lake.device_event SET PARTITIONED BY (day);

CREATE TABLE lake.ingest_batch (   -- spool, range: sequences that are stored; `day` is that of the earliest row
    day INTEGER, cluster VARCHAR, node VARCHAR, boot_id VARCHAR, spool_id VARCHAR,
    first_sequence BIGINT, last_sequence BIGINT, received_at TIMESTAMPTZ
);
ALTER TABLE lake.ingest_batch SET PARTITIONED BY (day);

-- For every table: DuckLake's own default, snappy in format 1, takes 40 % more room.
CALL lake.set_option('parquet_compression', 'zstd');
CALL lake.set_option('parquet_version', '2');
