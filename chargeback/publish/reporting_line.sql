-- Purpose: statement lines of other currencies in the reporting currency.
-- Grain: none
-- Reads: reporting_line

SELECT * FROM reporting_line
