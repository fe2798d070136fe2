-- Rule: an invoice is stated once, over all invoice files.
-- Kind: invoices
-- Reads: staged, invoice

WITH stated AS (
    SELECT issuer, invoice_id, currency, source_row, $file AS source_file FROM staged
    UNION ALL BY NAME
    SELECT issuer, invoice_id, currency, source_row, source_file FROM invoice WHERE source_file <> $file
)
SELECT max(source_row) FILTER (WHERE source_file = $file) AS source_row, 'invoice_id' AS column_name, invoice_id AS value,
       'is stated ' || count(*) || ' times' AS message
FROM stated
GROUP BY issuer, invoice_id, currency
HAVING count(*) > 1 AND count(*) FILTER (WHERE source_file = $file) > 0
ORDER BY source_row
LIMIT $max_problems
