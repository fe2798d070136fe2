-- Purpose: what a build publishes: facts, postings and statement of one period, replaced together in one commit.
-- Grain: see each table
-- Reads: nothing

CREATE TABLE lake.build (          -- one row a published build; the newest of a period is the one shown
    period VARCHAR, build_id VARCHAR, version INTEGER, built_at TIMESTAMPTZ, program_version VARCHAR,
    config_sha256 VARCHAR, model_sha256 VARCHAR, inputs VARCHAR, input_lake_snapshot BIGINT
);

CREATE TABLE lake.node_hour (      -- cluster, node, hour: what could be held
    period VARCHAR, cluster VARCHAR, node VARCHAR, hour_start TIMESTAMPTZ, pool VARCHAR, gpu_model VARCHAR,
    resource_id VARCHAR, capacity_gpu_microseconds BIGINT
);
ALTER TABLE lake.node_hour SET PARTITIONED BY (period);

CREATE TABLE lake.held_hour (      -- holding, hour: who held how much of what
    period VARCHAR, snapshot_id VARCHAR, source_row BIGINT, hour_start TIMESTAMPTZ, team VARCHAR,
    cluster VARCHAR, node VARCHAR, pool VARCHAR, held_gpu_microseconds BIGINT
);
ALTER TABLE lake.held_hour SET PARTITIONED BY (period);

CREATE TABLE lake.queue_hour (     -- pool, hour: capacity, held, idle, and what waited meanwhile
    period VARCHAR, pool VARCHAR, hour_start TIMESTAMPTZ, capacity_gpu_microseconds BIGINT,
    held_gpu_microseconds BIGINT, pending_gpu_microseconds BIGINT, pending_while_idle_gpu_microseconds BIGINT
);
ALTER TABLE lake.queue_hour SET PARTITIONED BY (period);

CREATE TABLE lake.pending_hour (   -- pool, team, hour: who waited
    period VARCHAR, pool VARCHAR, team VARCHAR, hour_start TIMESTAMPTZ, pending_gpu_microseconds BIGINT
);
ALTER TABLE lake.pending_hour SET PARTITIONED BY (period);

CREATE TABLE lake.quota_hour (     -- pool, team, hour: what was reserved for whom
    period VARCHAR, pool VARCHAR, team VARCHAR, hour_start TIMESTAMPTZ, quota_gpu_microseconds BIGINT
);
ALTER TABLE lake.quota_hour SET PARTITIONED BY (period);

CREATE TABLE lake.pool_stop (      -- pool, stop: a pool in use that nobody held at all for a while
    period VARCHAR, pool VARCHAR, stopped_from TIMESTAMPTZ, stopped_to TIMESTAMPTZ,
    gpus_held_before DECIMAL(18, 6), idle_gpu_microseconds BIGINT
);

CREATE TABLE lake.quota_conflict ( -- pool, team, interval: two quota files that disagree
    period VARCHAR, pool VARCHAR, team VARCHAR, conflict_from TIMESTAMPTZ, conflict_to TIMESTAMPTZ,
    source VARCHAR, gpus DECIMAL(18, 6), other_source VARCHAR, other_gpus DECIMAL(18, 6)
);

CREATE TABLE lake.gap (            -- what could not be priced, matched or mapped, counted and named
    period VARCHAR, kind VARCHAR, subject VARCHAR, gap_from TIMESTAMPTZ, gap_to TIMESTAMPTZ,
    gpu_microseconds BIGINT, amount DECIMAL(38, 12), currency VARCHAR, reason VARCHAR
);

CREATE TABLE lake.posting (        -- the double-entry ledger: one movement of money between two accounts
    period VARCHAR, step VARCHAR, currency VARCHAR, hour_start TIMESTAMPTZ,
    from_account VARCHAR, to_account VARCHAR, category VARCHAR, team VARCHAR, pool VARCHAR, gpu_model VARCHAR,
    policy VARCHAR, amount DECIMAL(38, 12), gpu_microseconds BIGINT, charge_snapshot_id VARCHAR, charge_row BIGINT
);
ALTER TABLE lake.posting SET PARTITIONED BY (period);

CREATE TABLE lake.pool_weight (    -- pool, kind, team: how a pool's cost was shared
    period VARCHAR, currency VARCHAR, pool VARCHAR, kind VARCHAR, team VARCHAR, policy VARCHAR,
    weight DECIMAL(38, 0), total_weight DECIMAL(38, 0)
);

CREATE TABLE lake.statement_line ( -- what finance books, in minor units of the currency
    period VARCHAR, version INTEGER, team VARCHAR, cost_centre VARCHAR, gl_account VARCHAR, category VARCHAR,
    pool VARCHAR, gpu_model VARCHAR, policy VARCHAR, gpu_microseconds BIGINT, exact_amount DECIMAL(38, 12),
    amount DECIMAL(38, 12), currency VARCHAR
);
ALTER TABLE lake.statement_line SET PARTITIONED BY (period);

CREATE TABLE lake.bridge (         -- issuer, currency: from the invoice to the statement, term by term
    period VARCHAR, issuer VARCHAR, currency VARCHAR, invoice_total DECIMAL(38, 12), charge_count BIGINT,
    billed_total DECIMAL(38, 12), statement_total DECIMAL(38, 12), prepaid_change DECIMAL(38, 12),
    absent_from_export DECIMAL(38, 12), rounding DECIMAL(38, 12), difference DECIMAL(38, 12)
);
