-- Purpose: how much of what was paid ahead for a commitment is used up by the start and by the end of the period, where the
--   export does not say it: F(t) = total * elapsed // term of the total known at that time, so that months and hours
--   telescope and nothing is priced by a rounded hour. A bill that comes later moves only the month that it comes in.
--   total = what was paid once + the recurring part of the whole term, in minor units, where recurring fees are paid ahead
--   too. At the end of the term it is what was really paid, if that differs by a rounding only (up to 100 minor units).
--   Recurring fees without a known hourly amount belong to the month that bills them.
--   An export with charges that take something out of the account (effective cost) amortises itself: nothing is added.
-- Grain: commitment_key, issuer, currency, account
-- Reads: commitment_account, commitment_term, prepaid_movement, minor_unit

WITH cutoff AS (
    SELECT false AS is_end, seconds_of($period_start) AS at_s UNION ALL SELECT true, seconds_of($period_end)
),
paid AS (
    SELECT
        a.commitment_key, a.issuer, a.currency, a.account, a.weight, a.weight_to, a.weight_all, c.is_end, c.at_s,
        to_pico(coalesce(sum(m.once_amount), 0)) AS once_all, to_pico(coalesce(sum(m.recurring_amount), 0)) AS recurring_all,
        coalesce(sum(m.consuming_count), 0) > 0 AS is_amortised_by_export
    FROM commitment_account AS a
    CROSS JOIN cutoff AS c
    LEFT JOIN prepaid_movement AS m
        ON m.issuer = a.issuer AND m.currency = a.currency AND m.commitment = a.account AND (c.is_end OR NOT m.is_of_period)
    GROUP BY ALL
),
own AS (
    SELECT
        p.commitment_key, p.issuer, p.currency, p.account, p.is_end, p.is_amortised_by_export,
        split_of(p.once_all, p.weight_to, p.weight_all) - split_of(p.once_all, p.weight_to - p.weight, p.weight_all) AS once_pico,
        split_of(p.recurring_all, p.weight_to, p.weight_all)
            - split_of(p.recurring_all, p.weight_to - p.weight, p.weight_all) AS recurring_pico,
        CASE WHEN p.recurring_all <> 0 THEN
            (to_pico(t.recurring_hourly_amount) * (t.term_to_s - t.term_from_s) // 3600 + to_pico(u.minor_unit) // 2)
                // to_pico(u.minor_unit) * to_pico(u.minor_unit)
        END AS recurring_term_pico,
        to_pico(u.minor_unit) AS unit_pico, t.term_to_s - t.term_from_s AS term_s,
        least(greatest(p.at_s - t.term_from_s, 0), t.term_to_s - t.term_from_s) AS elapsed_s
    FROM paid AS p
    JOIN commitment_term AS t USING (commitment_key)
    JOIN minor_unit AS u ON u.currency = p.currency
),
amortised AS (
    SELECT
        *,
        CASE
            WHEN is_amortised_by_export THEN 0
            WHEN recurring_term_pico IS NULL THEN once_pico * elapsed_s // term_s + recurring_pico
            WHEN elapsed_s < term_s THEN (once_pico + recurring_term_pico) * elapsed_s // term_s
            WHEN abs(recurring_pico - recurring_term_pico) <= 100 * unit_pico THEN once_pico + recurring_pico
            ELSE once_pico + recurring_term_pico
        END AS amortised_pico
    FROM own
)
SELECT
    commitment_key, issuer, currency, account, bool_or(is_amortised_by_export) AS is_amortised_by_export,
    CAST(sum(amortised_pico) FILTER (WHERE NOT is_end) AS HUGEINT) AS amortised_before_pico,
    CAST(sum(amortised_pico) FILTER (WHERE is_end) AS HUGEINT) AS amortised_to_pico
FROM amortised
GROUP BY commitment_key, issuer, currency, account
