-- Check: each invoice equals the charges that are on it, within the tolerance of FOCUS 1.4, which is then booked as rounding.
-- Invariant: 2
-- Tier: always
-- Reads: invoice_total

SELECT issuer, invoice_id, currency, invoice_total, billed_total, absent_tax, residual, tolerance, charge_count, status
FROM invoice_total
WHERE status IN ('differs', 'no_charges', 'beyond_invoices')
