-- Purpose: from invoice to statement, term by term, for each issuer and currency.
-- Grain: none
-- Scope: finance
-- Reads: bridge

SELECT
    issuer, currency, invoice_total, charge_count, billed_total, statement_total, prepaid_change, absent_from_export, invoice_tax,
    rounding, difference
FROM lake.bridge
WHERE period = $period
ORDER BY issuer, currency
