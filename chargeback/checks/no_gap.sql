-- Check: nothing is unpriced, unmatched, unmapped or in conflict. Worth a look before a month is closed.
-- Invariant: 6
-- Tier: strict
-- Reads: gap

SELECT kind, subject, gap_from, gap_to, amount, currency, reason FROM gap ORDER BY kind, subject
