-- Purpose: lines of a GPU cloud's invoice as charges. A line without a commitment costs what it is billed. With one it is either
--   what was paid ahead (Purchase: billed, costs nothing yet), what was used from it (Usage: costs, and is billed nothing) or
--   what was given for nothing (Credit: lowers the cost, and is money of the balance). Where the file does not say which,
--   a line of a commitment that names a resource is usage and any other a purchase, and a negative line is a credit.
--   A line's tax is a charge of its own, numbered after the last line.
-- Grain: source_row
-- Reads: export_row

WITH spelling AS (
    SELECT MAP {
        'usage': 'Usage', 'purchase': 'Purchase', 'tax': 'Tax', 'credit': 'Credit', 'adjustment': 'Adjustment'
    } AS words
),
line AS (
    SELECT
        e.*, timezone('UTC', CAST(e.period || '-01' AS TIMESTAMP)) AS period_from,
        CASE lower(e.commitment_ref) WHEN 'balance' THEN 'balance:' || lower(e.provider) ELSE e.commitment_ref END AS commitment,
        CASE
            WHEN e.category IS NOT NULL THEN coalesce(s.words[lower(e.category)], e.category)
            WHEN e.commitment_ref IS NOT NULL AND e.resource_ref IS NULL THEN 'Purchase'
            WHEN e.amount < 0 AND e.commitment_ref IS NULL THEN 'Credit'
            ELSE 'Usage'
        END AS charge_category,
        max(e.source_row) OVER () AS last_row
    FROM export_row AS e
    CROSS JOIN spelling AS s
),
charged AS (
    SELECT
        *, period_from + INTERVAL 1 MONTH AS period_to, charge_category = 'Usage' AS is_usage,
        charge_category IN ('Usage', 'Credit') AND commitment IS NOT NULL AS is_prepaid,
        charge_category = 'Purchase' AND commitment IS NOT NULL AS is_payment
    FROM line
),
priced AS (
    SELECT
        source_row, part, part_row, provider, provider AS invoice_issuer, coalesce(account, provider) AS billing_account_id,
        invoice_id, period_from AS billing_period_start, period_to AS billing_period_end,
        coalesce(charge_start, period_from) AS charge_period_start, coalesce(charge_end, period_to) AS charge_period_end,
        charge_category, CASE WHEN is_usage THEN 'Usage-Based' ELSE 'One-Time' END AS charge_frequency,
        coalesce(description, sku) AS charge_description,
        CASE WHEN is_prepaid THEN 0 ELSE amount END AS billed_cost, CASE WHEN is_payment THEN 0 ELSE amount END AS effective_cost,
        CAST(TRY(quantity * unit_price) AS DECIMAL(38, 12)) AS contracted_cost, unit_price AS contracted_unit_price,
        currency AS billing_currency, currency AS pricing_currency, quantity AS pricing_quantity, unit AS pricing_unit,
        CASE WHEN is_usage THEN quantity END AS consumed_quantity, CASE WHEN is_usage THEN unit END AS consumed_unit,
        commitment AS commitment_discount_id, CASE WHEN is_usage AND commitment IS NOT NULL THEN 'Used' END
            AS commitment_discount_status,
        CASE WHEN starts_with(commitment, 'balance:') THEN 'Prepaid Balance' END AS commitment_discount_type,
        CASE WHEN commitment IS NOT NULL THEN 'Spend' END AS commitment_discount_category,
        resource_ref AS resource_id, sku AS sku_id, coalesce(sku, description) AS service_name, tax, last_row
    FROM charged
),
taxed AS (
    SELECT
        source_row + last_row AS source_row, part, coalesce(part_row, source_row) AS part_row, provider, invoice_issuer,
        billing_account_id, invoice_id, billing_period_start, billing_period_end, charge_period_start, charge_period_end,
        'Tax' AS charge_category, 'One-Time' AS charge_frequency,
        concat_ws(': ', 'tax', charge_description) AS charge_description,
        tax AS billed_cost, tax AS effective_cost, billing_currency
    FROM priced
    WHERE tax <> 0
)
SELECT
    * EXCLUDE (tax, last_row) REPLACE (
        CAST(billed_cost AS DECIMAL(38, 12)) AS billed_cost, CAST(effective_cost AS DECIMAL(38, 12)) AS effective_cost
    ),
    'neocloud' AS x_origin, false AS x_is_split_row
FROM (FROM priced UNION ALL BY NAME FROM taxed)
