-- Rule: a rate is more than nothing and below a million, and is between two currencies.
-- Kind: rates
-- Reads: staged

SELECT source_row, 'rate' AS column_name, CAST(rate AS VARCHAR) AS value, 'is no rate: it must be more than 0 and below 1000000' AS message
FROM staged
WHERE rate <= 0 OR rate >= 1000000
UNION ALL
SELECT source_row, 'reporting_currency' AS column_name, reporting_currency AS value, 'is the currency itself' AS message
FROM staged
WHERE reporting_currency = currency
ORDER BY source_row
LIMIT $max_problems
