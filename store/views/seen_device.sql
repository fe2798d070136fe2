-- Purpose: what each device is, as intervals: a row holds until the node says something else of that device.
-- Grain: cluster, node, device, valid_from
-- Reads: seen_device
SELECT
    s.* EXCLUDE (seen_from_second),
    make_timestamptz(s.seen_from_second * 1000000) AS valid_from,
    lead(make_timestamptz(s.seen_from_second * 1000000)) OVER (
        PARTITION BY s.cluster, s.node, s.device ORDER BY s.seen_from_second
    ) AS valid_to
FROM (
    FROM lake.seen_device
    QUALIFY row_number() OVER (
        PARTITION BY cluster, node, device, seen_from_second ORDER BY model, driver, profile
    ) = 1
) AS s
