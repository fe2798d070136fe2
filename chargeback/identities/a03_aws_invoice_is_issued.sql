-- Identity: A3
-- Severity: info
-- Purpose: an AWS report has invoice ids once its month's invoices are issued. Until then its amounts are estimates, even when the
--   next month has begun.
-- Source: AWS Data Exports table dictionary, bill_invoice_id
-- Reads: staged_charge

SELECT
    min(source_row) AS source_row, 'InvoiceId' AS column_name, CAST(NULL AS VARCHAR) AS value,
    'is empty in ' || count(*) || ' lines of ' || strftime(billing_period_start, '%Y-%m')
        || ': their invoice is not issued, the amounts are estimates' AS message
FROM staged_charge
WHERE provider = 'AWS' AND x_line_type IS NOT NULL AND invoice_id IS NULL
GROUP BY billing_period_start
