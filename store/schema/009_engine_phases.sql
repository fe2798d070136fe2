-- Purpose: what later agents tell of model servers beside the rest: arrivals, drafts, device time by phase, operations.
-- Grain: as before
-- Reads: nothing

ALTER TABLE lake.engine_window ADD COLUMN received_requests BIGINT;
ALTER TABLE lake.engine_window ADD COLUMN speculation_draft_events BIGINT;
ALTER TABLE lake.engine_window ADD COLUMN prefill_busy_ms INTEGER;
ALTER TABLE lake.engine_window ADD COLUMN decode_busy_ms INTEGER;
ALTER TABLE lake.engine_window ADD COLUMN estimated_gigaflops BIGINT;
