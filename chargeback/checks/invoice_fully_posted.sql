-- Check: what left the invoice accounts equals the billed cost of the period's charges, plus the invoice's own rounding.
-- Invariant: 1
-- Tier: always
-- Reads: posting, charge_span, posting_rounding

WITH posted AS (
    SELECT from_account AS account, currency, sum(amount) AS posted
    FROM posting WHERE starts_with(from_account, 'invoice:') GROUP BY ALL
),
billed AS (
    SELECT 'invoice:' || issuer AS account, currency, sum(billed_cost) AS billed FROM charge_span GROUP BY ALL
),
rounding AS (
    SELECT from_account AS account, currency, from_pico(amount_pico) AS rounding FROM posting_rounding
)
SELECT account, currency, billed, coalesce(posted, 0) AS posted
FROM billed
FULL JOIN posted USING (account, currency)
LEFT JOIN rounding USING (account, currency)
WHERE coalesce(billed, 0) + coalesce(rounding, 0) <> coalesce(posted, 0)
