-- Purpose: each invoice of a period beside the charges that are on it, and what is left between them.
-- Grain: issuer, currency, invoice_id
-- Scope: finance
-- Reads: invoice_total

SELECT
    issuer, currency, invoice_id, invoice_count, charge_count, billed_total, tax_total, absent_tax, invoice_total, residual,
    tolerance, status
FROM lake.invoice_total
WHERE period = $period
ORDER BY currency, issuer, invoice_id NULLS LAST
