-- Purpose: the ledger of the period: every movement of money, from the invoice to a team.
-- Grain: none
-- Reads: posting_charge, posting_invoice, posting_node, posting_capacity, posting_server, posting_pool

SELECT
    $period AS period, step, currency, hour_at(hour_number) AS hour_start, from_account, to_account, category, team, pool,
    gpu_model, policy, from_pico(amount_pico) AS amount, CAST(gpu_microseconds AS BIGINT) AS gpu_microseconds,
    charge_snapshot_id, charge_row
FROM (
    FROM posting_charge
    UNION ALL BY NAME FROM posting_invoice
    UNION ALL BY NAME FROM posting_node
    UNION ALL BY NAME FROM posting_capacity
    UNION ALL BY NAME FROM posting_server
    UNION ALL BY NAME FROM posting_pool
)
WHERE amount_pico <> 0 OR gpu_microseconds <> 0
