-- Purpose: BigQuery's own SQL, run there: the rows of one invoice month as JSON, one a row, and when each was exported. BigQuery
--   writes a FLOAT64 with the digits that name it and a NUMERIC as text, so no digit is lost on the way. `columns`, `export_table`
--   and `is_in_scanned_days` are filled in from the table's own description.
-- Grain: none
-- Reads: nothing

SELECT TO_JSON_STRING(STRUCT(`columns`)) AS line, UNIX_MICROS(export_time) AS exported_microseconds
FROM `export_table`
WHERE invoice.month = @invoice_month AND `is_in_scanned_days`
