-- Purpose: the ledger.
-- Grain: none
-- Reads: posting

SELECT * FROM posting
