-- Purpose: fees of commitments. Fees of one hour that cover the same usage are one pot, which usage shares; `pot_row` is the
--   first of them. Several commitments in a pot are told apart by nobody, so they are named by what they cover.
-- Grain: source_row
-- Reads: gcp_line

WITH keyed AS (
    SELECT
        source_row, billing_account_id, currency, invoice_month, hour, region, fee_plan AS plan, net, priced, subscription,
        CASE WHEN fee_plan = 'resource' THEN resource_key ELSE spend_key END AS key,
        coalesce(subscription, sku_id) AS own_commitment
    FROM gcp_line
    WHERE is_fee
),
potted AS (
    SELECT
        *,
        min(source_row) OVER pot AS pot_row, sum(net) OVER pot AS pot_amount, sum(priced) OVER pot AS pot_units,
        min(own_commitment) OVER pot AS first_commitment, max(own_commitment) OVER pot AS last_commitment
    FROM keyed
    -- A fee that says nothing of what it covers is a pot of its own.
    WINDOW pot AS (
        PARTITION BY billing_account_id, currency, invoice_month, hour, plan, key,
            CASE WHEN key IS NULL THEN source_row END
    )
)
SELECT
    * EXCLUDE (own_commitment, first_commitment, last_commitment),
    CASE WHEN first_commitment = last_commitment THEN first_commitment ELSE 'gcp:' || key END AS commitment
FROM potted
