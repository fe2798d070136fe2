-- Purpose: what is not in the cost of owned hardware: what its row leaves open, and what was not written off when it left early.
-- Grain: none
-- Reads: asset_service, asset_power

WITH open_cost AS (
    SELECT
        coalesce(s.cluster || '/', '') || s.node AS subject, s.from_s, s.to_s, s.source_file, s.asset_row,
        list_filter([
            CASE WHEN s.power_price_kwh IS NULL THEN 'power (no price)' END,
            CASE WHEN s.rated_kw IS NULL AND p.blind_ms > 0 AND s.power_price_kwh IS NOT NULL THEN 'power while no meter saw it (no rated_kw)' END,
            CASE WHEN s.base_kw IS NULL AND p.metered_ms > 0 AND s.power_price_kwh IS NOT NULL THEN 'power beside the GPUs (no base_kw)' END,
            CASE WHEN s.pue IS NULL AND s.power_price_kwh IS NOT NULL THEN 'power of the facility (no PUE)' END,
            CASE WHEN s.colo_monthly_amount IS NULL THEN 'colo' END,
            CASE WHEN s.support_monthly_amount IS NULL THEN 'support' END,
            CASE WHEN s.staff_monthly_amount IS NULL THEN 'staff' END
        ], lambda part: part IS NOT NULL) AS parts
    FROM asset_service AS s
    JOIN asset_power AS p USING (asset_snapshot_id, asset_row)
)
SELECT
    'asset_cost_not_stated' AS kind, subject, from_s // 3600 AS from_hour, (to_s + 3599) // 3600 AS to_hour,
    NULL AS gpu_microseconds, CAST(NULL AS DECIMAL(38, 12)) AS amount, NULL AS currency,
    source_file || ' row ' || asset_row || ' does not state: ' || array_to_string(parts, ', ') || '; not in the cost' AS reason
FROM open_cost WHERE len(parts) > 0
UNION ALL
SELECT
    'asset_retired_early' AS kind, coalesce(cluster || '/', '') || node AS subject, to_s // 3600, (to_s + 3599) // 3600, NULL,
    from_pico(total_pico - written_off_pico) AS amount, currency,
    source_file || ' row ' || asset_row || ' left service before it was written off: the rest is in no month' AS reason
FROM asset_service WHERE is_retired AND total_pico <> written_off_pico
