-- Purpose: BigQuery's own SQL, run there: what an invoice month holds by now. The export only appends, so that the number of rows
--   and the newest export time name the content.
-- Grain: none
-- Reads: nothing

SELECT COUNT(*) AS row_count, UNIX_MICROS(MAX(export_time)) AS exported_microseconds
FROM `export_table`
WHERE invoice.month = @invoice_month AND `is_in_scanned_days`
