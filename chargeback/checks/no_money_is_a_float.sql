-- Check: no column of money in the ledger's tables is a floating-point number.
-- Invariant: 4
-- Tier: always
-- Reads: nothing

SELECT table_name, column_name, data_type
FROM duckdb_columns()
WHERE data_type IN ('DOUBLE', 'FLOAT')
  AND regexp_matches(column_name, 'amount|cost|total|price|rounding|prepaid|difference|weight')
