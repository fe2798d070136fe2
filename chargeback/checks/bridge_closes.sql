-- Check: invoice total = statement lines + change in prepaid + lines absent from the export + rounding, for each issuer and
--   currency; an issuer without a loaded invoice cannot be bridged and is listed among the gaps instead.
-- Invariant: 2
-- Tier: always
-- Reads: bridge

SELECT issuer, currency, invoice_total, billed_total, statement_total, prepaid_change, absent_from_export, rounding, difference
FROM bridge
WHERE difference <> 0
