-- Purpose: step 1 of the ledger: charges leave the invoice for nodes and pools; what is paid but not yet consumed, or
--   consumed but paid earlier, goes through the prepaid account of its commitment.
--   An instance that was two nodes within an hour (renamed, moved) is shared between them by what each could hold. Owned
--   hardware goes to its node by name.
-- Grain: none
-- Reads: charge_span, charge_hour, commitment_hour, node_hour

WITH seat AS (
    SELECT
        *, sum(share) OVER (PARTITION BY resource_id, hour_number ORDER BY cluster, node) AS share_to,
        sum(share) OVER (PARTITION BY resource_id, hour_number) AS share_all
    FROM (
        SELECT
            cluster, node, hour_number, pool, gpu_model, resource_id,
            CAST(greatest(capacity_gpu_microseconds, 1) AS HUGEINT) AS share
        FROM node_hour WHERE resource_id IS NOT NULL
        UNION ALL
        SELECT
            cluster, node, hour_number, pool, gpu_model, node_account(cluster, node) AS resource_id,
            CAST(greatest(capacity_gpu_microseconds, 1) AS HUGEINT) AS share
        FROM node_hour
        WHERE node_account(cluster, node) IN (SELECT node_resource_id FROM charge_span WHERE snapshot_id = 'asset')
    )
),
target AS (
    SELECT
        c.* REPLACE (
            coalesce(
                c.amount_pico * n.share_to // n.share_all - c.amount_pico * (n.share_to - n.share) // n.share_all,
                c.amount_pico
            ) AS amount_pico
        ),
        n.cluster, n.node, n.pool AS node_pool, n.gpu_model,
        CASE WHEN c.kind = 'usage' THEN 'overhead' ELSE c.kind END AS pool_kind
    FROM charge_hour AS c
    LEFT JOIN seat AS n
        ON n.resource_id = c.node_resource_id AND n.hour_number = c.hour_number
    WHERE c.kind <> 'commitment'  -- those are shared by use
),
consumed AS (
    SELECT
        currency, hour_number,
        CASE WHEN billed_cost = effective_cost THEN 'invoice:' || issuer ELSE 'prepaid:' || commitment END AS from_account,
        CASE WHEN node IS NOT NULL THEN node_account(cluster, node) ELSE 'pool:' || issuer || '/' || pool_kind END
            AS to_account,
        coalesce(node_pool, issuer) AS pool, gpu_model, amount_pico,
        snapshot_id AS charge_snapshot_id, source_row AS charge_row
    FROM (FROM target UNION ALL BY NAME FROM commitment_hour)
),
paid AS (
    SELECT
        currency, span_from_s // 3600 AS hour_number, 'invoice:' || issuer AS from_account,
        'prepaid:' || commitment AS to_account, issuer AS pool, CAST(NULL AS VARCHAR) AS gpu_model,
        to_pico(billed_cost) AS amount_pico, snapshot_id AS charge_snapshot_id, source_row AS charge_row
    FROM charge_span
    WHERE billed_cost <> effective_cost AND billed_cost <> 0
)
SELECT 'charge' AS step, *
FROM (FROM consumed UNION ALL BY NAME FROM paid)
WHERE amount_pico <> 0
