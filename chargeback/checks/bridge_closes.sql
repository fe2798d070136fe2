-- Check: invoice total = statement lines + change in prepaid + lines absent from the export + rounding, for each issuer and
--   currency, and the issuers' statement totals are those of the statement's lines; an issuer without a loaded invoice
--   cannot be bridged and is listed among the gaps instead.
-- Invariant: 2
-- Tier: always
-- Reads: bridge, statement_line

SELECT issuer, currency, invoice_total, billed_total, statement_total, prepaid_change, absent_from_export, rounding, difference
FROM bridge
WHERE difference <> 0 OR invoice_total <> statement_total + prepaid_change + absent_from_export + rounding
UNION ALL BY NAME
SELECT 'all issuers' AS issuer, currency, b.statement_total, l.booked_total - b.statement_total AS difference
FROM (SELECT currency, sum(statement_total) AS statement_total FROM bridge GROUP BY currency) AS b
FULL JOIN (SELECT currency, sum(amount) AS booked_total FROM statement_line GROUP BY currency) AS l USING (currency)
WHERE coalesce(b.statement_total, 0) <> coalesce(l.booked_total, 0)
