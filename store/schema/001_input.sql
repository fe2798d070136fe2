-- Purpose: what users load, as they wrote it, typed. Each row names the snapshot, file and row it came from.
-- Grain: one row of an input file
-- Reads: nothing

CREATE TABLE lake.snapshot (       -- one row each time a source is loaded; the newest of (kind, source) is current
    kind VARCHAR, source VARCHAR, snapshot_id VARCHAR, file_sha256 VARCHAR, options VARCHAR,
    row_count BIGINT, control_sum DECIMAL(38, 12), rounded_row_count BIGINT, loaded_at TIMESTAMPTZ
);

CREATE TABLE lake.node (
    snapshot_id VARCHAR, source_row BIGINT,
    cluster VARCHAR, node VARCHAR, gpu_count INTEGER, valid_from TIMESTAMPTZ, valid_to TIMESTAMPTZ,
    pool VARCHAR, provider VARCHAR, resource_id VARCHAR, instance_type VARCHAR, gpu_model VARCHAR,
    vcpus INTEGER, memory_gib DECIMAL(18, 6)
);

CREATE TABLE lake.device (
    snapshot_id VARCHAR, source_row BIGINT,
    device VARCHAR, cluster VARCHAR, node VARCHAR, valid_from TIMESTAMPTZ, valid_to TIMESTAMPTZ,
    slot INTEGER, parent VARCHAR, gpu_model VARCHAR
);

CREATE TABLE lake.holding (
    snapshot_id VARCHAR, source_row BIGINT,
    held_from TIMESTAMPTZ, held_to TIMESTAMPTZ, gpus DECIMAL(18, 6),
    device VARCHAR, node VARCHAR, pool VARCHAR, cluster VARCHAR, team VARCHAR, namespace VARCHAR, workload VARCHAR,
    owner_kind VARCHAR, job_id VARCHAR, user_name VARCHAR, source VARCHAR
);

CREATE TABLE lake.demand (         -- who waited for how many GPUs: the queue, beside what was held
    snapshot_id VARCHAR, source_row BIGINT,
    waited_from TIMESTAMPTZ, waited_to TIMESTAMPTZ, gpus DECIMAL(18, 6),
    pool VARCHAR, team VARCHAR, namespace VARCHAR, workload VARCHAR, job_id VARCHAR, user_name VARCHAR, source VARCHAR
);

CREATE TABLE lake.charge (         -- FOCUS 1.0 - 1.4 Cost and Usage, its names in snake_case
    snapshot_id VARCHAR, source_row BIGINT,
    provider VARCHAR, invoice_issuer VARCHAR, billing_account_id VARCHAR, sub_account_id VARCHAR,
    invoice_id VARCHAR, billing_period_start TIMESTAMPTZ, billing_period_end TIMESTAMPTZ,
    charge_period_start TIMESTAMPTZ, charge_period_end TIMESTAMPTZ,
    charge_category VARCHAR, charge_class VARCHAR, charge_frequency VARCHAR, charge_description VARCHAR,
    billed_cost DECIMAL(38, 12), effective_cost DECIMAL(38, 12), list_cost DECIMAL(38, 12), contracted_cost DECIMAL(38, 12),
    billing_currency VARCHAR, pricing_category VARCHAR, pricing_quantity DECIMAL(38, 12), pricing_unit VARCHAR,
    consumed_quantity DECIMAL(38, 12), consumed_unit VARCHAR,
    commitment_discount_id VARCHAR, commitment_discount_status VARCHAR,
    capacity_reservation_id VARCHAR, capacity_reservation_status VARCHAR,
    resource_id VARCHAR, resource_name VARCHAR, resource_type VARCHAR, region_id VARCHAR,
    service_category VARCHAR, service_name VARCHAR, sku_id VARCHAR, sku_price_id VARCHAR,
    allocated_method_id VARCHAR, tags VARCHAR
);

CREATE TABLE lake.invoice (
    snapshot_id VARCHAR, source_row BIGINT,
    issuer VARCHAR, invoice_id VARCHAR, period VARCHAR, currency VARCHAR,
    total_amount DECIMAL(38, 12), tax_amount DECIMAL(38, 12), status VARCHAR
);

CREATE TABLE lake.quota (
    snapshot_id VARCHAR, source_row BIGINT,
    pool VARCHAR, team VARCHAR, gpus DECIMAL(18, 6), valid_from TIMESTAMPTZ, valid_to TIMESTAMPTZ
);

CREATE TABLE lake.team_rule (
    snapshot_id VARCHAR, source_row BIGINT,
    team VARCHAR, cost_centre VARCHAR, gl_account VARCHAR,
    match_namespace VARCHAR, match_workload VARCHAR, match_user VARCHAR, match_account VARCHAR, match_label VARCHAR,
    valid_from TIMESTAMPTZ, valid_to TIMESTAMPTZ
);
