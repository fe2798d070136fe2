-- Check: the statement's cents are the ledger's movements into team accounts, rounded once, and no line is off by a whole unit.
-- Invariant: 4
-- Tier: always
-- Reads: posting, statement_line, minor_unit

WITH exact AS (
    SELECT currency, sum(amount) AS exact_total FROM posting WHERE starts_with(to_account, 'team:') GROUP BY ALL
),
booked AS (
    SELECT currency, sum(amount) AS booked_total, max(abs(amount - exact_amount)) AS largest_shift
    FROM statement_line GROUP BY ALL
)
SELECT currency, exact_total, booked_total, largest_shift
FROM exact
FULL JOIN booked USING (currency)
LEFT JOIN minor_unit USING (currency)
WHERE booked_total IS NULL OR exact_total IS NULL
   OR abs(booked_total - exact_total) * 2 > minor_unit
   OR largest_shift >= minor_unit
