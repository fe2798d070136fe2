-- Check: debits equal credits for each charge: its billed cost leaves the invoice, its effective cost reaches a node or pool.
-- Invariant: 1
-- Tier: always
-- Reads: posting, charge_span

WITH posted AS (
    SELECT
        charge_snapshot_id AS snapshot_id, charge_row AS source_row,
        coalesce(sum(amount) FILTER (WHERE starts_with(from_account, 'invoice:')), 0) AS left_invoice,
        coalesce(sum(amount) FILTER (WHERE NOT starts_with(to_account, 'prepaid:')), 0) AS reached_cost
    FROM posting WHERE step = 'charge' GROUP BY ALL
)
SELECT s.snapshot_id, s.source_row, s.billed_cost, p.left_invoice, s.effective_cost, p.reached_cost
FROM charge_span AS s
LEFT JOIN posted AS p USING (snapshot_id, source_row)
WHERE s.billed_cost <> coalesce(p.left_invoice, 0) OR s.effective_cost <> coalesce(p.reached_cost, 0)
