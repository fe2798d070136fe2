-- Check: what a shared model server cost in an hour is what its tenants, its idle owner and the unattributed rest pay for
--   that hour, to the last unit, and a tenant's input, cached and output parts are its whole.
-- Invariant: 1
-- Tier: always
-- Reads: posting, token_cost

WITH spent AS (
    SELECT to_account AS account, hour_start, currency, sum(amount) AS spent
    FROM posting WHERE starts_with(to_account, 'server:') GROUP BY ALL
),
told AS (
    SELECT
        'server:' || server AS account, hour_at(hour_number) AS hour_start, currency, from_pico(sum(amount_pico)) AS told,
        count(*) FILTER (WHERE input_pico + cached_input_pico + output_pico <> amount_pico) AS broken
    FROM token_cost GROUP BY ALL
)
SELECT account, hour_start, currency, spent, told, broken
FROM spent
FULL JOIN told USING (account, hour_start, currency)
WHERE coalesce(spent, 0) <> coalesce(told, 0) OR broken > 0
