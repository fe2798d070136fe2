-- Check: a month opens its prepaid accounts with what the month before, as it is published, closed them with. Otherwise that
--   month was built before a charge of it was restated: build it again first.
-- Invariant: 7
-- Tier: strict
-- Reads: prepaid

WITH before AS (
    SELECT issuer, currency, commitment, closing AS closed
    FROM lake.prepaid WHERE period = strftime($period_start - INTERVAL 1 DAY, '%Y-%m')
)
SELECT issuer, commitment, currency, b.closed, coalesce(p.opening, 0) AS opening
FROM before AS b
LEFT JOIN prepaid AS p USING (issuer, currency, commitment)
WHERE b.closed <> coalesce(p.opening, 0)
