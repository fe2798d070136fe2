-- Purpose: each commitment that is known, once: what the first file (by name) leaves open, a later one fills in, so that a
--   list from the provider's API and a file that names the pool complete each other.
-- Grain: commitment_key
-- Reads: commitment

WITH placed AS (
    SELECT *, lower(commitment_id) AS commitment_key, {'file': source_file, 'row': source_row} AS place
    FROM commitment
)
SELECT
    commitment_key, arg_min(snapshot_id, place) AS commitment_snapshot_id, arg_min(source_row, place) AS commitment_row,
    arg_min(commitment_id, place) AS commitment_id, arg_min(lower(kind), place) AS kind,
    arg_min(seconds_of(term_start), place) AS term_from_s, arg_min(seconds_of(term_end), place) AS term_to_s,
    arg_min(upfront_amount, place) AS upfront_amount, arg_min(recurring_hourly_amount, place) AS recurring_hourly_amount,
    -- Only what is counted in machines or GPUs can be compared with what nodes used.
    arg_min(CAST(quantity * 1000000 AS BIGINT), place) FILTER (
        WHERE coalesce(lower(unit), 'node') IN ('node', 'nodes', 'instance', 'instances', 'gpu', 'gpus')
    ) AS quantity_millionths,
    coalesce(arg_min(lower(unit), place) IN ('gpu', 'gpus'), false) AS counts_gpus,
    arg_min(pool, place) AS pool, arg_min(currency, place) AS currency, arg_min(lower(region), place) AS region,
    arg_min(lower(instance_type), place) AS instance_type,
    coalesce(arg_min(lower(status), place) IN ('cancelled', 'canceled', 'failed', 'payment-failed'), false) AS is_cancelled,
    count(DISTINCT term_start) > 1 OR count(DISTINCT term_end) > 1 OR count(DISTINCT upfront_amount) > 1
        OR count(DISTINCT recurring_hourly_amount) > 1 OR count(DISTINCT quantity) > 1 AS is_disputed
FROM placed
GROUP BY commitment_key
