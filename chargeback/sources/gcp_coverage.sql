-- Purpose: which part of a pot of fees each covered row used: by its committed-use credits where the commitment is to spend,
--   by the units that these paid for where it is to resources (there the pot's other units stay unused). The part of a row
--   is F(to) - F(from) of the cumulative F(t) = fee * t // whole, so that no unit of the fee is lost or doubled.
-- Grain: source_row, plan
-- Reads: gcp_line, gcp_fee

WITH used AS (
    SELECT
        source_row, billing_account_id, currency, invoice_month, hour, 'spend' AS plan, spend_key AS key,
        TRY(CAST(-spend_credit * 1000000000000 AS HUGEINT)) AS weight
    FROM gcp_line
    WHERE NOT is_fee AND spend_credit <> 0
    UNION ALL
    SELECT
        source_row, billing_account_id, currency, invoice_month, hour, 'resource', resource_key,
        TRY(CAST(priced * 1000000000 AS HUGEINT) * CAST(-resource_credit * 1000000000 AS HUGEINT)
            // CAST(cost * 1000000000 AS HUGEINT) * 1000)
    FROM gcp_line
    WHERE NOT is_fee AND resource_credit <> 0
),
matched AS (
    SELECT
        u.source_row, u.plan, f.pot_row, f.commitment, u.weight,
        TRY(CAST(f.pot_amount * 1000000000000 AS HUGEINT)) AS pot_pico,
        TRY(CAST(f.pot_units * 1000000000000 AS HUGEINT)) AS pot_units_pico,
        sum(u.weight) OVER (PARTITION BY f.pot_row ORDER BY u.source_row) AS weight_to,
        sum(u.weight) OVER (PARTITION BY f.pot_row) AS weight_all
    FROM used AS u
    JOIN gcp_fee AS f
        ON f.source_row = f.pot_row AND f.plan = u.plan AND f.key = u.key AND f.hour = u.hour
       AND f.billing_account_id = u.billing_account_id AND f.currency = u.currency AND f.invoice_month = u.invoice_month
),
shared AS (
    SELECT
        source_row, plan, pot_row, commitment, weight, weight_to, pot_pico,
        CASE WHEN plan = 'resource' THEN greatest(weight_all, pot_units_pico) ELSE weight_all END AS whole
    FROM matched
    WHERE weight_all > 0
)
SELECT
    source_row, plan, pot_row, commitment,
    -- A fee beyond what 128 bits can share stays on its own row.
    coalesce(
        TRY(CAST(
            CAST(pot_pico * weight_to // whole - pot_pico * (weight_to - weight) // whole AS DECIMAL(26, 0))
            * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12)
        )),
        0
    ) AS amount
FROM shared
