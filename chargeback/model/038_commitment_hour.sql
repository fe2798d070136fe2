-- Purpose: each hour's part of an amortised commitment goes to the nodes that used it, by their share of what it held
--   (quantity times time; of what was used, where that is more or the quantity is not known). The rest is unused; where
--   nothing tells who used the commitment it is unknown, not unused.
-- Grain: none
-- Reads: charge_hour, commitment_charge, commitment_use

WITH due AS (
    SELECT
        h.* EXCLUDE (kind, node_resource_id), k.commitment_key,
        k.pool IS NOT NULL OR k.commitment_key IN (SELECT commitment_key FROM commitment_use) AS is_known,
        coalesce(
            CAST(k.quantity_millionths AS HUGEINT) * (
                least(h.hour_number * 3600 + 3600, seconds_of(k.charge_period_end))
                - greatest(h.hour_number * 3600, seconds_of(k.charge_period_start))
            ), 0
        ) AS capacity
    FROM charge_hour AS h
    JOIN commitment_charge AS k USING (snapshot_id, source_row)
    WHERE h.kind = 'commitment'
),
laid AS (
    SELECT
        *, CAST(sum(used_microseconds) OVER (
            PARTITION BY commitment_key, hour_number ORDER BY cluster NULLS LAST, node NULLS LAST
        ) AS HUGEINT) AS used_to,
        CAST(sum(used_microseconds) OVER (PARTITION BY commitment_key, hour_number) AS HUGEINT) AS used_all
    FROM commitment_use
),
used AS (
    SELECT
        d.*, l.cluster, l.node, l.pool AS node_pool, l.gpu_model,
        split_of(d.amount_pico, l.used_to, greatest(d.capacity, l.used_all))
            - split_of(d.amount_pico, l.used_to - l.used_microseconds, greatest(d.capacity, l.used_all)) AS part_pico
    FROM due AS d
    JOIN laid AS l USING (commitment_key, hour_number)
),
used_sum AS (
    SELECT snapshot_id, source_row, hour_number, sum(part_pico) AS part_pico FROM used GROUP BY ALL
),
rest AS (
    SELECT d.*, d.amount_pico - coalesce(u.part_pico, 0) AS part_pico
    FROM due AS d
    LEFT JOIN used_sum AS u USING (snapshot_id, source_row, hour_number)
)
SELECT
    snapshot_id, source_row, hour_number, issuer, currency, commitment, billed_cost, effective_cost, cluster, node, node_pool,
    gpu_model, 'overhead' AS pool_kind, part_pico AS amount_pico
FROM used
UNION ALL BY NAME
SELECT
    snapshot_id, source_row, hour_number, issuer, currency, commitment, billed_cost, effective_cost,
    CASE WHEN is_known THEN 'unused_commitment' ELSE 'unknown' END AS pool_kind,
    part_pico AS amount_pico
FROM rest
