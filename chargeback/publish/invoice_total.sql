-- Purpose: each invoice beside its charges.
-- Grain: none
-- Reads: invoice_total

SELECT CAST($period AS VARCHAR) AS period, * FROM invoice_total
