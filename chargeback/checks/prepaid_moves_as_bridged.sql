-- Check: what the prepaid accounts of an issuer gained or lost is the change in prepaid of its bridge, and the accounts hold
--   what the ledger moved into and out of them.
-- Invariant: 2
-- Tier: always
-- Reads: prepaid, bridge, posting

WITH held AS (
    SELECT issuer, currency, sum(closing - opening) AS moved FROM prepaid GROUP BY ALL
),
posted AS (
    SELECT account, currency, sum(amount) AS posted
    FROM (
        SELECT to_account AS account, currency, amount FROM posting
        UNION ALL SELECT from_account AS account, currency, -amount AS amount FROM posting
    )
    WHERE starts_with(account, 'prepaid:')
    GROUP BY ALL
),
listed AS (
    SELECT 'prepaid:' || commitment AS account, currency, sum(closing - opening) AS moved FROM prepaid GROUP BY ALL
)
SELECT issuer AS account, currency, coalesce(moved, 0) AS moved, coalesce(prepaid_change, 0) AS expected
FROM held FULL JOIN bridge USING (issuer, currency)
WHERE coalesce(moved, 0) <> coalesce(prepaid_change, 0)
UNION ALL
SELECT account, currency, coalesce(moved, 0) AS moved, coalesce(posted, 0) AS expected
FROM listed FULL JOIN posted USING (account, currency)
WHERE coalesce(moved, 0) <> coalesce(posted, 0)
