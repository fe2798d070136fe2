-- Identity: M2
-- Severity: error
-- Purpose: Azure's actual cost has usage under reservations and savings plans at 0: what it costs stands in amortized cost only.
--   A delivery with commitments needs both.
-- Source: Azure's schemas of cost and usage details; actual and amortized cost
-- Reads: staged_charge

SELECT
    source_row, 'BenefitId' AS column_name, coalesce(commitment_discount_id, resource_id) AS value,
    'is a commitment, and nothing says what its usage costs: load actual and amortized cost together' AS message
FROM staged_charge
WHERE provider = 'Microsoft' AND ends_with(x_line_type, ' without amortized cost')
