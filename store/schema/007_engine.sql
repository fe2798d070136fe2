-- Purpose: what node agents saw of model servers, as whole numbers, window by window. `day` counts days since 1970,
--   `second` is the second of the day.
-- Grain: see each table
-- Reads: nothing

CREATE TABLE lake.engine_window (     -- server, model, engine index, window, batch: integrals, maxima and what was added
    day INTEGER, second INTEGER, cluster VARCHAR, node VARCHAR,
    server VARCHAR, engine VARCHAR, window_ms INTEGER, observed_ms INTEGER, scrape_count INTEGER,
    engine_version VARCHAR, model VARCHAR, engine_index VARCHAR, role VARCHAR, running_observed_ms INTEGER,
    running_request_ms BIGINT, running_max_requests BIGINT, waiting_observed_ms INTEGER, waiting_request_ms BIGINT,
    waiting_max_requests BIGINT, kv_observed_ms INTEGER, kv_used_ms INTEGER, kv_used_max_millionths INTEGER,
    kv_capacity_tokens BIGINT, prompt_tokens BIGINT, prompt_cached_tokens BIGINT, prompt_computed_tokens BIGINT,
    generation_tokens BIGINT, generation_is_at_finish BOOLEAN, finished_prompt_tokens BIGINT,
    finished_generation_tokens BIGINT, prefix_query_tokens BIGINT, prefix_hit_tokens BIGINT, finished_requests BIGINT,
    failed_requests BIGINT, aborted_requests BIGINT, preemption_events BIGINT, speculation_draft_tokens BIGINT,
    speculation_accepted_tokens BIGINT, busy_ms INTEGER, idle_ms INTEGER, asleep_ms INTEGER, model_load_ms BIGINT,
    counter_resets INTEGER, quality_bits INTEGER
);
ALTER TABLE lake.engine_window SET PARTITIONED BY (day);
ALTER TABLE lake.engine_window SET SORTED BY (server ASC, second ASC);

CREATE TABLE lake.engine_histogram (  -- server, model, engine index, window, signal, bounds, batch: observations by size
    day INTEGER, second INTEGER, cluster VARCHAR, node VARCHAR,
    server VARCHAR, engine VARCHAR, signal VARCHAR, bounds VARCHAR, counts VARCHAR, sum_microunits BIGINT,
    count BIGINT, engine_version VARCHAR, model VARCHAR, engine_index VARCHAR, role VARCHAR
);
ALTER TABLE lake.engine_histogram SET PARTITIONED BY (day);
ALTER TABLE lake.engine_histogram SET SORTED BY (server ASC, second ASC);
