-- Purpose: rows of Google Cloud's billing export as charges. A row is billed its cost and its discounts; a promotional credit is
--   a payment and a Credit charge of its own. The fee of a commitment is a Purchase:
--   - earlier accounting, where usage carries a committed-use credit: the fee moves to the usage covered, the rest is Unused;
--   - since 2025, where usage has the commitment's own price and FEE_UTILIZATION_OFFSET takes the used part off the fee:
--     what remains of the fee is Unused. No usage carries a credit then, so nothing is shared a second time.
--   In an hour with committed-use credits that no fee explains, a fee without usage stays a purchase.
--   Charges beyond the first of a row are numbered behind the delivery's last row; `part_row` is the row they came from.
-- Grain: source_row
-- Reads: gcp_line, gcp_fee, gcp_coverage

WITH line AS (
    SELECT
        source_row, part, coalesce(part_row, source_row) AS part_row,
        'Google Cloud' AS provider, 'Google Cloud' AS invoice_issuer, 'Google Cloud' AS host_provider,
        billing_account_id, project_id AS sub_account_id, project_name AS sub_account_name,
        month_from AS billing_period_start, month_from + INTERVAL 1 MONTH AS billing_period_end,
        used_from AS charge_period_start, used_to AS charge_period_end,
        CASE
            WHEN is_fee THEN 'Purchase'
            WHEN cost_type = 'regular' THEN 'Usage'
            WHEN cost_type = 'tax' THEN 'Tax'
            WHEN cost_type IN ('adjustment', 'rounding_error') THEN 'Adjustment'
            ELSE cost_type
        END AS charge_category,
        CASE WHEN is_adjustment AND used_to <= month_from THEN 'Correction' END AS charge_class,
        CASE WHEN is_fee THEN 'Recurring' WHEN cost_type = 'regular' THEN 'Usage-Based' ELSE 'One-Time' END AS charge_frequency,
        sku AS charge_description, net AS billed_cost, net AS effective_cost,
        CASE WHEN cost_type = 'regular' THEN cost_at_list END AS list_cost,
        CASE WHEN cost_type = 'regular' THEN cost_at_effective_price_default END AS contracted_cost,
        currency AS billing_currency, currency AS pricing_currency, currency_conversion_rate AS x_fx_rate,
        CASE
            WHEN cost_type <> 'regular' THEN NULL
            WHEN is_fee OR price_model <> 'Default' THEN 'Committed'
            WHEN contains(lower(sku), 'preemptible') THEN 'Dynamic'
            ELSE 'Standard'
        END AS pricing_category,
        CASE WHEN cost_type = 'regular' THEN priced END AS pricing_quantity,
        CASE WHEN cost_type = 'regular' THEN priced_unit END AS pricing_unit,
        CASE WHEN cost_type = 'regular' AND NOT is_fee THEN consumed END AS consumed_quantity,
        CASE WHEN cost_type = 'regular' AND NOT is_fee THEN consumed_unit END AS consumed_unit,
        CASE WHEN cost_type = 'regular' AND NOT is_fee THEN reservation END AS capacity_reservation_id,
        CASE
            WHEN cost_type <> 'regular' OR is_fee OR reservation IS NULL THEN NULL
            WHEN is_unused_reservation THEN 'Unused'
            ELSE 'Used'
        END AS capacity_reservation_status,
        coalesce(resource_global_name, resource_name) AS resource_id, resource_name,
        nullif(regexp_extract(resource_global_name, '/([^/]+)/[^/]+$', 1), '') AS resource_type,
        region AS region_id, zone AS availability_zone,
        CASE WHEN service_id = '6F81-5844-456A' THEN 'Compute' END AS service_category, service AS service_name,
        sku_id, sku AS sku_meter, machine AS x_instance_type, label_json AS tags, credit_json AS x_credits,
        has_no_zone AS x_zone_assumed, cost_type AS x_line_type, 'export' AS x_origin, false AS x_is_split_row,
        CAST(NULL AS VARCHAR) AS commitment_discount_id, CAST(NULL AS VARCHAR) AS commitment_discount_status,
        CAST(NULL AS VARCHAR) AS commitment_discount_type, CAST(NULL AS VARCHAR) AS commitment_discount_category
    FROM gcp_line
),
size AS (
    SELECT max(source_row) AS last_row FROM gcp_line
),
explained AS (
    SELECT pot_row, sum(amount) AS amount FROM gcp_coverage GROUP BY pot_row
),
unexplained AS (
    SELECT DISTINCT l.billing_account_id, l.currency, l.hour, p.plan, CASE WHEN p.plan = 'resource' THEN l.region END AS region
    FROM gcp_line AS l
    JOIN (VALUES ('spend'), ('resource')) AS p (plan)
        ON NOT l.is_fee AND CASE p.plan WHEN 'spend' THEN l.spend_credit ELSE l.resource_credit END <> 0
    ANTI JOIN gcp_coverage AS c ON c.source_row = l.source_row AND c.plan = p.plan
),
fee AS (
    SELECT
        f.source_row, f.commitment, f.plan || '-based CUD' AS kind,
        CASE f.plan WHEN 'spend' THEN 'Spend' ELSE 'Usage' END AS category,
        e.pot_row IS NULL AND x.plan IS NOT NULL AS stays,
        CASE WHEN e.pot_row IS NULL THEN f.net WHEN f.source_row = f.pot_row THEN f.pot_amount - e.amount ELSE 0 END AS unused
    FROM gcp_fee AS f
    LEFT JOIN explained AS e USING (pot_row)
    LEFT JOIN unexplained AS x
        ON x.plan = f.plan AND x.hour = f.hour AND x.billing_account_id = f.billing_account_id AND x.currency = f.currency
       AND (f.plan = 'spend' OR x.region IS NOT DISTINCT FROM f.region)
),
own AS (
    SELECT
        l.* REPLACE (
            CASE WHEN f.stays = false THEN 0 ELSE l.effective_cost END AS effective_cost,
            CASE WHEN f.stays = false THEN f.commitment END AS commitment_discount_id,
            CASE WHEN f.stays = false THEN f.kind END AS commitment_discount_type,
            CASE WHEN f.stays = false THEN f.category END AS commitment_discount_category
        )
    FROM line AS l
    LEFT JOIN fee AS f USING (source_row)
    -- Usage that a commitment pays for in full is the covered charge alone.
    WHERE l.billed_cost IS NULL OR l.billed_cost <> 0
       OR l.source_row NOT IN (SELECT source_row FROM gcp_coverage)
),
covered AS (
    SELECT
        l.* REPLACE (
            l.source_row + s.last_row * CASE c.plan WHEN 'spend' THEN 1 ELSE 2 END AS source_row,
            CAST(0 AS DECIMAL(38, 12)) AS billed_cost, c.amount AS effective_cost,
            CAST(NULL AS DECIMAL(38, 12)) AS list_cost, CAST(NULL AS DECIMAL(38, 12)) AS contracted_cost,
            'Committed' AS pricing_category, c.commitment AS commitment_discount_id, 'Used' AS commitment_discount_status,
            c.plan || '-based CUD' AS commitment_discount_type,
            CASE c.plan WHEN 'spend' THEN 'Spend' ELSE 'Usage' END AS commitment_discount_category
        )
    FROM line AS l
    JOIN gcp_coverage AS c USING (source_row)
    CROSS JOIN size AS s
),
unused AS (
    SELECT
        o.* REPLACE (
            o.source_row + s.last_row AS source_row, 'Usage' AS charge_category, 'Usage-Based' AS charge_frequency,
            CAST(0 AS DECIMAL(38, 12)) AS billed_cost, f.unused AS effective_cost,
            CAST(NULL AS DECIMAL(38, 12)) AS list_cost, CAST(NULL AS DECIMAL(38, 12)) AS contracted_cost,
            CAST(NULL AS DECIMAL(38, 12)) AS pricing_quantity, CAST(NULL AS VARCHAR) AS pricing_unit,
            f.commitment AS resource_id, 'Unused' AS commitment_discount_status
        )
    FROM own AS o
    JOIN fee AS f USING (source_row)
    CROSS JOIN size AS s
    WHERE NOT f.stays AND f.unused <> 0
),
promoted AS (
    SELECT
        l.* REPLACE (
            l.source_row + s.last_row * 3 AS source_row, 'Credit' AS charge_category, 'One-Time' AS charge_frequency,
            p.promotion AS billed_cost, p.promotion AS effective_cost,
            CAST(NULL AS DECIMAL(38, 12)) AS list_cost, CAST(NULL AS DECIMAL(38, 12)) AS contracted_cost,
            CAST(NULL AS VARCHAR) AS pricing_category,
            CAST(NULL AS DECIMAL(38, 12)) AS pricing_quantity, CAST(NULL AS VARCHAR) AS pricing_unit,
            CAST(NULL AS DECIMAL(38, 12)) AS consumed_quantity, CAST(NULL AS VARCHAR) AS consumed_unit,
            CAST(NULL AS VARCHAR) AS capacity_reservation_id, CAST(NULL AS VARCHAR) AS capacity_reservation_status
        )
    FROM line AS l
    JOIN gcp_line AS p USING (source_row)
    CROSS JOIN size AS s
    WHERE p.promotion <> 0
)
FROM own
UNION ALL BY NAME FROM covered
UNION ALL BY NAME FROM unused
UNION ALL BY NAME FROM promoted
