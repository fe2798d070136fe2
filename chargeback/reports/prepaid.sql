-- Purpose: the prepaid accounts of a period: paid and not yet consumed, from opening to closing.
-- Grain: issuer, currency, commitment
-- Scope: finance
-- Reads: prepaid

SELECT
    issuer, currency, commitment, kind, term_start, term_end, opening, purchases, amortised_used, amortised_unused,
    amortised_unknown, closing, status
FROM lake.prepaid
WHERE period = $period
ORDER BY currency, issuer, commitment
