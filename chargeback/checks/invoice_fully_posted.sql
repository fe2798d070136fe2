-- Check: what left the invoice accounts equals the billed cost of the period's charges, plus what the invoice itself asks beyond them
--   (its own rounding, tax that no line carries).
-- Invariant: 1
-- Tier: always
-- Reads: posting, charge_span, posting_invoice

WITH posted AS (
    SELECT from_account AS account, currency, sum(amount) AS posted
    FROM posting WHERE starts_with(from_account, 'invoice:') GROUP BY ALL
),
billed AS (
    SELECT 'invoice:' || issuer AS account, currency, sum(billed_cost) AS billed FROM charge_span GROUP BY ALL
),
asked AS (
    SELECT from_account AS account, currency, from_pico(sum(amount_pico)) AS asked FROM posting_invoice GROUP BY ALL
)
SELECT account, currency, billed, coalesce(posted, 0) AS posted
FROM billed
FULL JOIN posted USING (account, currency)
LEFT JOIN asked USING (account, currency)
WHERE coalesce(billed, 0) + coalesce(asked, 0) <> coalesce(posted, 0)
