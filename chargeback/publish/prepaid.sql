-- Purpose: the prepaid accounts.
-- Grain: none
-- Reads: prepaid

SELECT * FROM prepaid
