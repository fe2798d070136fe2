-- Identity: A1
-- Severity: error
-- Purpose: the type of each line of an AWS report is one whose cost is defined. A type that AWS adds would otherwise be counted
--   as plain usage, and what it repeats twice.
-- Source: AWS Data Exports table dictionary, line_item_line_item_type
-- Reads: staged_charge

SELECT
    source_row, 'lineItem/LineItemType' AS column_name, x_line_type AS value,
    'is a line type that we do not know: its cost would be counted as billed, as an adjustment' AS message
FROM staged_charge
WHERE provider = 'AWS' AND x_line_type NOT IN (
    'Usage', 'SavingsPlanCoveredUsage', 'SavingsPlanNegation', 'SavingsPlanRecurringFee', 'SavingsPlanUpfrontFee',
    'DiscountedUsage', 'RIFee', 'Fee', 'Tax', 'Credit', 'Refund', 'Discount', 'EdpDiscount', 'BundledDiscount',
    'PrivateRateDiscount'
)
