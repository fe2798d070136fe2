-- Identity: M1
-- Severity: error
-- Purpose: a charge of Azure's cost details that is under no reservation or savings plan stands in actual and in amortized cost.
--   One that stands in one of them only was exported at another time or for another scope, and one of the two totals is wrong.
-- Source: Azure's schemas of cost and usage details; actual and amortized cost
-- Reads: staged_charge

SELECT
    source_row, 'Cost' AS column_name, CAST(billed_cost + effective_cost AS VARCHAR) AS value,
    'stands ' || regexp_extract(x_line_type, 'in (actual|amortized) cost only$') || ': export both for the same scope and time'
        AS message
FROM staged_charge
WHERE provider = 'Microsoft' AND regexp_matches(x_line_type, ' in (actual|amortized) cost only$')
