-- Purpose: what each owned node cost in a period, by part, beside the GPU time that it could have held.
-- Grain: currency, cluster, node
-- Scope: finance
-- Reads: asset_charge, node_hour

WITH cost AS (
    SELECT
        billing_currency AS currency, cluster, node,
        coalesce(sum(billed_cost) FILTER (WHERE charge_part = 'depreciation'), 0) AS depreciation,
        coalesce(sum(billed_cost) FILTER (WHERE charge_part = 'power_measured'), 0) AS power_measured,
        coalesce(sum(billed_cost) FILTER (WHERE charge_part = 'power_rated'), 0) AS power_rated,
        coalesce(sum(billed_cost) FILTER (WHERE charge_part = 'colo'), 0) AS colo,
        coalesce(sum(billed_cost) FILTER (WHERE charge_part = 'support'), 0) AS support,
        coalesce(sum(billed_cost) FILTER (WHERE charge_part = 'staff'), 0) AS staff,
        sum(billed_cost) AS total
    FROM lake.asset_charge WHERE period = $period
    GROUP BY ALL
),
capacity AS (
    SELECT cluster, node, CAST(sum(capacity_gpu_microseconds) AS HUGEINT) AS gpu_microseconds
    FROM lake.node_hour
    WHERE period = $period AND strftime(hour_start, '%Y-%m') = $period
    GROUP BY ALL
)
SELECT c.*, coalesce(g.gpu_microseconds, 0) AS gpu_microseconds
FROM cost AS c
LEFT JOIN capacity AS g USING (cluster, node)
ORDER BY currency, cluster, node
