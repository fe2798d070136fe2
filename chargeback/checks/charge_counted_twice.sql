-- Check: the same charge line does not come from two files (an export loaded again under another name).
-- Invariant: 1
-- Tier: always
-- Reads: charge

SELECT
    -- The first and the last of them: distinct names in each group cost more than the rest of the check.
    min(source_file) || ', ' || max(source_file) AS files, resource_id, sku_id, charge_category, charge_period_start,
    charge_period_end, billed_cost, count(*) AS times
FROM charge
WHERE billing_period_start >= $period_start AND billing_period_start < $period_end
  AND resource_id IS NOT NULL AND billed_cost <> 0
GROUP BY
    billing_account_id, sub_account_id, resource_id, sku_id, sku_price_id, charge_category, charge_class, charge_description,
    charge_period_start, charge_period_end, billed_cost, effective_cost, invoice_issuer, consumed_quantity, tags
HAVING min(snapshot_id) <> max(snapshot_id)
