-- Purpose: holdings with their device and their times. Filter on `day` (days since 1970) too: files are found by it.
-- Grain: none
-- Reads: held_window, device_number
SELECT
    n.device,
    make_timestamptz((h.day * 86400::BIGINT + h.second) * 1000000) AS held_from,
    make_timestamptz((h.day * 86400::BIGINT + h.second + h.seconds) * 1000000) AS held_to,
    h.* EXCLUDE (dh, second)
FROM lake.held_window AS h
JOIN lake.device_number AS n ON n.device_no = h.dh // 24
