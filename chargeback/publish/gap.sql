-- Purpose: what could not be priced, matched or mapped.
-- Grain: none
-- Reads: gap

SELECT * FROM gap
