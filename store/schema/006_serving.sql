-- Purpose: what a build publishes of shared model servers: how their hours were divided, and what a token cost.
-- Grain: see each table
-- Reads: nothing

ALTER TABLE lake.held_hour ADD COLUMN server VARCHAR;

CREATE TABLE lake.server_hour (    -- server, hour: tokens that gateways reported beside those that the engine counted
    period VARCHAR, server VARCHAR, hour_start TIMESTAMPTZ, basis VARCHAR,
    uncached_input_tokens DECIMAL(38, 0), cached_input_tokens DECIMAL(38, 0), output_tokens DECIMAL(38, 0),
    unreported_requests BIGINT,
    engine_input_tokens DECIMAL(38, 0), engine_cached_input_tokens DECIMAL(38, 0), engine_output_tokens DECIMAL(38, 0),
    reported_weight DECIMAL(38, 0), engine_weight DECIMAL(38, 0), gap_weight DECIMAL(38, 0)
);
ALTER TABLE lake.server_hour SET PARTITIONED BY (period);

CREATE TABLE lake.token_weight (   -- server: what a token of each kind weighs, in millionths
    period VARCHAR, server VARCHAR, basis VARCHAR,
    input_weight DECIMAL(38, 0), cached_input_weight DECIMAL(38, 0), output_weight DECIMAL(38, 0)
);

CREATE TABLE lake.token_share (    -- server, hour, kind, tenant, model: who used how many tokens
    period VARCHAR, server VARCHAR, hour_start TIMESTAMPTZ, kind VARCHAR, tenant VARCHAR, model VARCHAR, team VARCHAR,
    uncached_input_tokens DECIMAL(38, 0), cached_input_tokens DECIMAL(38, 0), output_tokens DECIMAL(38, 0),
    requests BIGINT, weight DECIMAL(38, 0)
);
ALTER TABLE lake.token_share SET PARTITIONED BY (period);

CREATE TABLE lake.token_cost (     -- server, hour, kind, tenant, model, payer, currency: what that cost
    period VARCHAR, server VARCHAR, hour_start TIMESTAMPTZ, kind VARCHAR, tenant VARCHAR, model VARCHAR, team VARCHAR,
    currency VARCHAR, amount DECIMAL(38, 12), input_amount DECIMAL(38, 12), cached_input_amount DECIMAL(38, 12),
    output_amount DECIMAL(38, 12), gpu_microseconds BIGINT
);
ALTER TABLE lake.token_cost SET PARTITIONED BY (period);
