-- Purpose: the statement.
-- Grain: none
-- Reads: statement_line

SELECT * FROM statement_line
