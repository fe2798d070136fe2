-- Check: owned hardware is stated once: no two assets of a node enter service at the same moment, and one at a time has its power.
-- Invariant: 1
-- Tier: always
-- Reads: asset_service

SELECT
    b.cluster, b.node, a.source_file AS file, a.asset_row AS file_row, b.source_file AS other_file, b.asset_row AS other_row
FROM asset_service AS a
JOIN asset_service AS b
    ON b.node = a.node AND b.cluster IS NOT DISTINCT FROM a.cluster
   AND (a.asset_snapshot_id, a.asset_row) < (b.asset_snapshot_id, b.asset_row)
WHERE a.service_from_s = b.service_from_s
   OR (a.power_price_kwh IS NOT NULL AND b.power_price_kwh IS NOT NULL AND a.from_s < b.to_s AND b.from_s < a.to_s)
