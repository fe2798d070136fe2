-- Purpose: from invoice to statement.
-- Grain: none
-- Reads: bridge

SELECT * FROM bridge
