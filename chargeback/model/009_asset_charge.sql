-- Purpose: what owned hardware cost in the period, as charges that one issues to oneself: depreciation, power (measured and
--   rated apart: energy x PUE x price, PUE 1 where none is stated), and monthly amounts, by the second where it served a part of the
--   month. One asset gives several charges (`charge_part`), which are numbered through.
-- Grain: snapshot_id, source_row
-- Reads: asset_service, asset_power

WITH asset AS (
    SELECT
        *, coalesce(cluster || '/', '') || node AS name, seconds_of($period_start) AS period_from_s,
        CAST(seconds_of($period_end) - seconds_of($period_start) AS HUGEINT) AS period_s,
        to_pico(power_price_kwh) * CAST(coalesce(pue, 1) * 1000000 AS HUGEINT) AS pico_per_million_kwh,
        ' kWh x ' || coalesce('PUE ' || rtrim(rtrim(CAST(pue AS VARCHAR), '0'), '.'), 'no PUE') || ' x '
            || rtrim(rtrim(CAST(power_price_kwh AS VARCHAR), '0'), '.') AS power_terms
    FROM asset_service
    JOIN asset_power USING (asset_snapshot_id, asset_row)
),
due AS (
    SELECT
        *, unnest(['depreciation', 'power_measured', 'power_rated', 'colo', 'support', 'staff']) AS charge_part,
        unnest([1, 2, 3, 4, 5, 6]) AS part_order, unnest([NULL, metered_microjoules, rated_microjoules, NULL, NULL, NULL]) AS microjoules,
        unnest([NULL, NULL, NULL, colo_monthly_amount, support_monthly_amount, staff_monthly_amount]) AS monthly_amount
    FROM asset
),
priced AS (
    SELECT
        *,
        CASE
            WHEN charge_part = 'depreciation' THEN written_off_pico - before_pico
            -- 3.6 * 10^12 microjoules are a kWh, and the PUE is in millionths.
            WHEN microjoules IS NOT NULL THEN split_of(pico_per_million_kwh, microjoules, 3600000000000000000::HUGEINT)
            ELSE to_pico(monthly_amount) * (to_s - period_from_s) // period_s - to_pico(monthly_amount) * (from_s - period_from_s) // period_s
        END AS amount_pico,
        CASE
            WHEN charge_part = 'depreciation' THEN 'depreciation of ' || name || ', month ' || month_number || ' of ' || months
            WHEN microjoules IS NOT NULL THEN
                replace(charge_part, 'power_', '') || ' power of ' || name || ', '
                || CAST(CAST(microjoules // 3600000000 AS DECIMAL(34, 0)) * 0.001 AS VARCHAR) || power_terms
            ELSE charge_part || ' of ' || name
        END AS charge_description
    FROM due
)
SELECT
    'asset' AS snapshot_id, row_number() OVER (ORDER BY source_file, asset_row, part_order) AS source_row,
    asset_snapshot_id, asset_row, charge_part, cluster, node, 'onprem' AS provider, 'on-prem' AS invoice_issuer,
    'self-issued' AS invoice_id, name AS resource_id, charge_description, currency AS billing_currency,
    from_pico(amount_pico) AS billed_cost, from_pico(amount_pico) AS effective_cost,
    make_timestamptz(from_s * 1000000) AS charge_period_start, make_timestamptz(to_s * 1000000) AS charge_period_end
FROM priced
WHERE amount_pico <> 0
