-- Rule: two currencies have one rate in a period, over all rate files.
-- Kind: rates
-- Reads: staged, exchange_rate

WITH stated AS (
    SELECT period, currency, reporting_currency, source_row, $file AS source_file FROM staged
    UNION ALL BY NAME
    SELECT period, currency, reporting_currency, source_row, source_file FROM exchange_rate WHERE source_file <> $file
)
SELECT max(source_row) FILTER (WHERE source_file = $file) AS source_row, 'rate' AS column_name,
       currency || ' in ' || reporting_currency AS value, 'has ' || count(*) || ' rates in ' || period AS message
FROM stated
GROUP BY period, currency, reporting_currency
HAVING count(*) > 1 AND count(*) FILTER (WHERE source_file = $file) > 0
ORDER BY source_row
LIMIT $max_problems
