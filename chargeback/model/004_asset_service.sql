-- Purpose: owned hardware that was in service in the period, with how much of it is written off by the period's start and end.
--   Straight line over calendar months: D(t) = (capex - salvage) * elapsed months // months, down to whole minor units; at
--   the end of its life it is all of it, so that months add up exactly and the odd cents of a division go to single months.
--   A month begun or ended within counts by its seconds, so that a life that starts on the 16th ends in the middle of its last month.
--   An asset that names no cluster is in the one whose inventory has its node, if there is just one.
-- Grain: asset_snapshot_id, asset_row
-- Reads: asset, node, minor_unit, setting

WITH home AS (
    SELECT node, any_value(cluster) AS cluster FROM node GROUP BY node HAVING count(DISTINCT cluster) = 1
),
placed AS (
    SELECT
        a.* EXCLUDE (cluster, currency), coalesce(a.cluster, h.cluster) AS cluster, coalesce(a.currency, s.reporting_currency) AS currency,
        seconds_of(a.in_service_from) AS service_from_s, seconds_of(a.in_service_to) AS service_to_s,
        seconds_of($period_start) AS period_from_s, seconds_of($period_end) AS period_to_s
    FROM asset AS a
    CROSS JOIN setting AS s
    LEFT JOIN home AS h ON h.node = a.node
    WHERE a.in_service_from < $period_end AND coalesce(a.in_service_to > $period_start, true)
),
cut AS (
    SELECT *, unnest([period_from_s, least(period_to_s, coalesce(service_to_s, period_to_s))]) AS cut_s, unnest([false, true]) AS is_end
    FROM placed
),
-- A moment is its month and the seconds into it.
dated AS (
    SELECT
        *, make_timestamp(service_from_s * 1000000) AS first_time, make_timestamp(cut_s * 1000000) AS cut_time,
        (year(cut_time) - year(first_time)) * 12 + month(cut_time) - month(first_time) AS month_steps,
        CAST(day(last_day(first_time)) * 86400 AS HUGEINT) AS first_month_s, CAST(day(last_day(cut_time)) * 86400 AS HUGEINT) AS cut_month_s,
        service_from_s - seconds_of(date_trunc('month', first_time)) AS first_offset_s,
        cut_s - seconds_of(date_trunc('month', cut_time)) AS cut_offset_s
    FROM cut
),
-- Elapsed months as a fraction: month_steps + cut_offset_s / cut_month_s - first_offset_s / first_month_s.
elapsed AS (
    SELECT
        d.*, first_month_s * cut_month_s AS one_month,
        greatest(month_steps * one_month + cut_offset_s * first_month_s - first_offset_s * cut_month_s, 0) AS elapsed_months,
        to_pico(capex_amount - salvage_amount) AS total_pico, to_pico(u.minor_unit) AS unit_pico
    FROM dated AS d
    JOIN minor_unit AS u USING (currency)
),
written_off AS (
    SELECT
        *,
        CASE WHEN elapsed_months >= months * one_month THEN total_pico
             ELSE total_pico // unit_pico * elapsed_months // (months * one_month) * unit_pico END AS off_pico
    FROM elapsed
)
SELECT
    snapshot_id AS asset_snapshot_id, source_row AS asset_row, any_value(source_file) AS source_file,
    any_value(cluster) AS cluster, any_value(node) AS node, any_value(currency) AS currency, any_value(months) AS months,
    any_value(service_from_s) AS service_from_s, any_value(greatest(service_from_s, period_from_s)) AS from_s, max(cut_s) AS to_s,
    max(off_pico) FILTER (WHERE NOT is_end) AS before_pico, max(off_pico) FILTER (WHERE is_end) AS written_off_pico,
    any_value(total_pico) AS total_pico, bool_or(coalesce(service_to_s <= period_to_s, false)) AS is_retired,
    CAST(least(max((elapsed_months + one_month - 1) // one_month), any_value(months)) AS INTEGER) AS month_number,
    any_value(power_price_kwh) AS power_price_kwh, any_value(pue) AS pue, any_value(rated_kw) AS rated_kw,
    any_value(base_kw) AS base_kw, any_value(colo_monthly_amount) AS colo_monthly_amount,
    any_value(support_monthly_amount) AS support_monthly_amount, any_value(staff_monthly_amount) AS staff_monthly_amount
FROM written_off
GROUP BY ALL
