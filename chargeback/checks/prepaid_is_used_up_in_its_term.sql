-- Check: over its whole term a commitment is consumed for what was paid for it (FOCUS: effective cost of its usage, used and
--   unused, equals the billed cost of its purchases).
-- Invariant: 2
-- Tier: strict
-- Reads: prepaid

SELECT issuer, commitment, term_end, currency, closing AS left_over FROM prepaid WHERE status = 'left_over'
