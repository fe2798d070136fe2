-- Check: every line's exact amount and GPU time are those of its postings; nothing is booked that the ledger does not know.
-- Invariant: 4
-- Tier: always
-- Reads: posting, statement_line

WITH ledger AS (
    SELECT team, category, pool, gpu_model, policy, currency, sum(amount) AS amount, sum(gpu_microseconds) AS gpu_microseconds
    FROM posting WHERE starts_with(to_account, 'team:') GROUP BY ALL
),
line AS (
    SELECT team, category, pool, gpu_model, policy, currency, sum(exact_amount) AS amount, sum(gpu_microseconds) AS gpu_microseconds
    FROM statement_line GROUP BY ALL
)
(FROM ledger EXCEPT FROM line)
UNION ALL
(FROM line EXCEPT FROM ledger)
