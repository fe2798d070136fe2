-- Purpose: what a build publishes of the waste of shared model servers: an explanation beside the ledger, no posting.
-- Grain: server, team, currency, hour, class
-- Reads: nothing

CREATE TABLE lake.server_waste (   -- a class without a row is unknown; team: who owns the server
    period VARCHAR, server VARCHAR, hour_start TIMESTAMPTZ, team VARCHAR, currency VARCHAR, class VARCHAR,
    amount DECIMAL(38, 12), gpu_microseconds BIGINT
);
ALTER TABLE lake.server_waste SET PARTITIONED BY (period);
