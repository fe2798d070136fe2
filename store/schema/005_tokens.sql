-- Purpose: who used how many tokens of which model server, as a gateway's or an engine's own ledger says.
-- Grain: one row of a tokens file; of a log, one server, tenant, model, hour and set of reported counts
-- Reads: nothing

-- input_tokens include cached_input_tokens, whatever the source's own habit. NULL = the source did not report it; requests
-- with and without a count are kept in rows of their own, so that a sum never hides a NULL. failed_requests and
-- cache_hit_requests (answered by the gateway's cache, tokens 0: no GPU worked) are part of requests.
CREATE TABLE lake.token_usage (
    snapshot_id VARCHAR, source_row BIGINT,
    server VARCHAR, tenant VARCHAR, model VARCHAR, hour_start TIMESTAMPTZ,
    input_tokens BIGINT, output_tokens BIGINT, cached_input_tokens BIGINT,
    requests BIGINT, failed_requests BIGINT, cache_hit_requests BIGINT
);
