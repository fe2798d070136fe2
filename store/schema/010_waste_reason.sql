-- Purpose: what is known of the waste of model servers without an amount, and how many replicas would be enough.
-- Grain: see each table
-- Reads: nothing

ALTER TABLE lake.server_waste ADD COLUMN events BIGINT;     -- aborted requests, preemptions: of the server, whoever owns it
ALTER TABLE lake.server_waste ADD COLUMN reason VARCHAR;    -- why there is no amount

CREATE TABLE lake.replica_need (   -- server, role, models: p95 of the whole group's load; needed_replicas NULL with a reason
    period VARCHAR, server VARCHAR, role VARCHAR, models VARCHAR, replicas BIGINT, needed_replicas BIGINT, slots BIGINT,
    running_p95_milli BIGINT, kv_p95_millionths BIGINT, reason VARCHAR
);
