-- Purpose: events with their times.
-- Grain: cluster, node, event_id
-- Reads: device_event
SELECT
    make_timestamptz(e.event_microsecond) AS happened_at,
    e.* EXCLUDE (event_microsecond)
FROM lake.device_event AS e
