-- Purpose: the charges that an export lacks: what the period uses up of a commitment that was paid ahead. They are billed at
--   nothing and numbered by commitment and account.
--   What comes to light after the term (a late fee) is an adjustment.
-- Grain: snapshot_id, source_row
-- Reads: commitment_amortised, commitment_term

WITH due AS (
    SELECT
        t.*, a.issuer, a.account, a.currency AS account_currency, a.amortised_to_pico - a.amortised_before_pico AS amount_pico,
        greatest(t.term_from_s, seconds_of($period_start)) AS from_s, least(t.term_to_s, seconds_of($period_end)) AS to_s
    FROM commitment_amortised AS a
    JOIN commitment_term AS t USING (commitment_key)
    WHERE a.amortised_to_pico <> a.amortised_before_pico
)
SELECT
    'commitment' AS snapshot_id, row_number() OVER (ORDER BY commitment_key, issuer, account_currency, account) AS source_row,
    commitment_key, commitment_snapshot_id, commitment_row, commitment_id, issuer AS invoice_issuer, account AS commitment_discount_id,
    account_currency AS billing_currency, CAST(0 AS DECIMAL(38, 12)) AS billed_cost, from_pico(amount_pico) AS effective_cost,
    CASE WHEN from_s < to_s THEN 'Usage' ELSE 'Adjustment' END AS charge_category, 'amortised' AS x_origin,
    CAST($period_start AS TIMESTAMPTZ) AS billing_period_start, CAST($period_end AS TIMESTAMPTZ) AS billing_period_end,
    CASE WHEN from_s < to_s THEN make_timestamptz(from_s * 1000000) ELSE $period_start END AS charge_period_start,
    CASE WHEN from_s < to_s THEN make_timestamptz(to_s * 1000000) ELSE $period_end END AS charge_period_end,
    quantity_millionths, counts_gpus, pool, instance_type
FROM due
