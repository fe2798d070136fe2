-- Rule: ChargeCategory is one that FOCUS defines; another would be posted to the wrong account.
-- Kind: charges
-- Reads: staged_charge

SELECT source_row, 'ChargeCategory' AS column_name, charge_category AS value,
       'is not Usage, Purchase, Tax, Credit or Adjustment' AS message
FROM staged_charge
WHERE lower(charge_category) NOT IN ('usage', 'purchase', 'tax', 'credit', 'adjustment')
ORDER BY source_row
LIMIT $max_problems
