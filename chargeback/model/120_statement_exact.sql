-- Purpose: what each team owes, exactly: the ledger's movements into team accounts, before they are rounded to cents.
-- Grain: team, category, pool, gpu_model, policy, currency
-- Reads: posting

SELECT
    team, category, pool, gpu_model, policy, currency,
    CAST(sum(amount) AS DECIMAL(38, 12)) AS exact_amount,
    CAST(sum(gpu_microseconds) AS BIGINT) AS gpu_microseconds
FROM posting
WHERE starts_with(to_account, 'team:')
GROUP BY ALL
