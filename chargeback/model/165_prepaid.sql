-- Purpose: the prepaid accounts of the period: what was paid and not yet consumed at its start, what came in and what was
--   used up, and what is left. Everything counts that was charged up to now, so a month closes with what the next opens with.
--   A balance below zero was consumed before it was paid, or its payment was never loaded: it is shown, never clamped.
-- Grain: issuer, currency, commitment
-- Reads: prepaid_movement, commitment_account, commitment_amortised, commitment_term, commitment_charge, commitment_hour

WITH moved AS (
    SELECT
        issuer, currency, commitment,
        coalesce(sum(billed_amount - used_amount - unused_amount) FILTER (WHERE NOT is_of_period), 0) AS before_amount,
        coalesce(sum(billed_amount) FILTER (WHERE is_of_period), 0) AS purchase_amount,
        coalesce(sum(used_amount) FILTER (WHERE is_of_period), 0) AS used_amount,
        coalesce(sum(unused_amount) FILTER (WHERE is_of_period), 0) AS unused_amount,
        sum(once_amount + recurring_amount) AS paid_amount, sum(consuming_count) > 0 AS is_amortised_by_export
    FROM prepaid_movement GROUP BY ALL
),
amortised AS (
    SELECT issuer, currency, account AS commitment, from_pico(sum(amortised_before_pico)) AS before_amount
    FROM commitment_amortised GROUP BY ALL
),
shared AS (
    SELECT
        issuer, currency, commitment,
        coalesce(from_pico(sum(amount_pico) FILTER (WHERE pool_kind = 'overhead')), 0) AS used_amount,
        coalesce(from_pico(sum(amount_pico) FILTER (WHERE pool_kind = 'unused_commitment')), 0) AS unused_amount,
        coalesce(from_pico(sum(amount_pico) FILTER (WHERE pool_kind = 'unknown')), 0) AS unknown_amount
    FROM commitment_hour GROUP BY ALL
),
late AS (
    SELECT invoice_issuer AS issuer, billing_currency AS currency, commitment_discount_id AS commitment, sum(effective_cost) AS late_amount
    FROM commitment_charge WHERE charge_category = 'Adjustment' GROUP BY ALL
),
term AS (
    SELECT
        a.issuer, a.currency, a.account AS commitment, min(t.term_from_s) AS term_from_s, max(t.term_to_s) AS term_to_s,
        CASE WHEN count(*) = 1 THEN any_value(t.kind) END AS kind, count(*) AS commitment_count
    FROM commitment_account AS a JOIN commitment_term AS t USING (commitment_key)
    GROUP BY ALL
),
joined AS (
    SELECT
        m.issuer, m.currency, m.commitment, t.kind, t.term_from_s, t.term_to_s, coalesce(t.commitment_count, 0) AS commitment_count,
        m.before_amount - coalesce(a.before_amount, 0) AS opening, m.purchase_amount AS purchases,
        m.used_amount + coalesce(s.used_amount, 0) + coalesce(l.late_amount, 0) AS amortised_used,
        m.unused_amount + coalesce(s.unused_amount, 0) AS amortised_unused, coalesce(s.unknown_amount, 0) AS amortised_unknown,
        m.paid_amount, m.is_amortised_by_export
    FROM moved AS m
    LEFT JOIN amortised AS a USING (issuer, currency, commitment)
    LEFT JOIN shared AS s USING (issuer, currency, commitment)
    LEFT JOIN late AS l USING (issuer, currency, commitment)
    LEFT JOIN term AS t USING (issuer, currency, commitment)
),
closed AS (
    SELECT *, opening + purchases - amortised_used - amortised_unused - amortised_unknown AS closing FROM joined
)
SELECT
    $period AS period, issuer, currency, commitment, kind, make_timestamptz(term_from_s * 1000000) AS term_start,
    make_timestamptz(term_to_s * 1000000) AS term_end, CAST(opening AS DECIMAL(38, 12)) AS opening,
    CAST(purchases AS DECIMAL(38, 12)) AS purchases, CAST(amortised_used AS DECIMAL(38, 12)) AS amortised_used,
    CAST(amortised_unused AS DECIMAL(38, 12)) AS amortised_unused,
    CAST(amortised_unknown AS DECIMAL(38, 12)) AS amortised_unknown, CAST(closing AS DECIMAL(38, 12)) AS closing,
    CASE
        WHEN closing = 0 THEN 'used_up'
        WHEN term_to_s <= seconds_of($period_end) AND paid_amount <> 0 THEN 'left_over'
        WHEN is_amortised_by_export AND paid_amount = 0 THEN 'payment_not_loaded'
        WHEN is_amortised_by_export OR commitment_count > 0 THEN 'open'
        ELSE 'no_term'
    END AS status
FROM closed
WHERE opening <> 0 OR purchases <> 0 OR amortised_used <> 0 OR amortised_unused <> 0 OR amortised_unknown <> 0
