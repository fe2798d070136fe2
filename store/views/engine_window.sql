-- Purpose: windows of model servers with their times. Filter on `day` (days since 1970) too: files are found by it.
-- Grain: none
-- Reads: engine_window
SELECT
    make_timestamptz((w.day * 86400::BIGINT + w.second) * 1000000) AS window_start,
    make_timestamptz((w.day * 86400::BIGINT + w.second) * 1000000 + w.window_ms * 1000::BIGINT) AS window_end,
    w.* EXCLUDE (second)
FROM lake.engine_window AS w
