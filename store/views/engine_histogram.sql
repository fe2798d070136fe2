-- Purpose: observations of model servers with their times. Filter on `day` (days since 1970) too: files are found by it.
-- Grain: none
-- Reads: engine_histogram
SELECT
    make_timestamptz((h.day * 86400::BIGINT + h.second) * 1000000) AS window_start,
    h.* EXCLUDE (second)
FROM lake.engine_histogram AS h
