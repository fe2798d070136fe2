-- Identity: M3
-- Severity: info
-- Purpose: no Azure cost export has taxes: they come with the invoice, and only from there.
-- Source: Microsoft's FOCUS conformance report (ChargeCategory); Azure's schemas of cost and usage details
-- Reads: staged_charge

SELECT
    min(source_row) AS source_row, CAST(NULL AS VARCHAR) AS column_name, CAST(NULL AS VARCHAR) AS value,
    'the export has no tax: load the invoice with its tax' AS message
FROM staged_charge
WHERE provider = 'Microsoft' AND x_line_type IS NOT NULL
HAVING count(*) > 0 AND count(*) FILTER (WHERE lower(charge_category) = 'tax') = 0
