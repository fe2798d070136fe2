-- Purpose: windows with their device and their times. Filter on `day` (days since 1970) too: files are found by it.
-- Grain: none
-- Reads: device_window, device_number
SELECT
    n.cluster,
    n.node,
    n.device,
    make_timestamptz((w.day * 86400::BIGINT + w.second) * 1000000) AS window_start,
    make_timestamptz((w.day * 86400::BIGINT + w.second) * 1000000 + w.window_ms * 1000::BIGINT) AS window_end,
    w.* EXCLUDE (dh, second)
FROM lake.device_window AS w
JOIN lake.device_number AS n ON n.device_no = w.dh // 24
