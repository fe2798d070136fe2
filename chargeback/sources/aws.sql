-- Purpose: lines of an AWS Cost and Usage Report as charges. What a line bills is its unblended cost, after discounts (net)
--   where the report has that: then lines of discounts, which it holds already, bill nothing. What a line costs depends on
--   its type, see `line_type`; a type that is not there is what identity A1 finds.
--   Usage under a Savings Plan is billed at the on-demand price and taken back by Negation lines, which have no quantity:
--   hours are not doubled, and both stand at one commitment, where they cancel. A recurring fee whose commitment was not used
--   up is two charges, as in FOCUS: the purchase, and the unused part, numbered after the last line of the report.
--   A Capacity Block is one fee at its purchase or start; it costs nothing yet, the model amortises it.
--   Split cost allocation (ECS, EKS) says per pod what the instance's own line bills already: rows that are in no sum.
--   There are no unit prices: the report's public rate knows no tiers.
-- Source: AWS Data Exports table dictionary (CUR 2.0), columns of line items, Savings Plans, reservations, split line items
-- Grain: source_row
-- Reads: export_row

WITH line_type (line_item_line_item_type, category, frequency, program, status, costs) AS (
    VALUES
        ('Usage', 'Usage', 'Usage-Based', NULL, NULL, 'as billed'),
        ('SavingsPlanCoveredUsage', 'Usage', 'Usage-Based', 'Savings Plan', 'Used', 'plan'),
        ('SavingsPlanNegation', 'Usage', 'Usage-Based', 'Savings Plan', 'Used', 'nothing'),
        ('SavingsPlanRecurringFee', 'Purchase', 'Recurring', 'Savings Plan', NULL, 'nothing'),
        ('SavingsPlanUpfrontFee', 'Purchase', 'One-Time', 'Savings Plan', NULL, 'nothing'),
        ('DiscountedUsage', 'Usage', 'Usage-Based', 'Reserved Instance', 'Used', 'reservation'),
        ('RIFee', 'Purchase', 'Recurring', 'Reserved Instance', NULL, 'nothing'),
        ('Fee', 'Purchase', 'One-Time', NULL, NULL, 'as billed'),
        ('Tax', 'Tax', NULL, NULL, NULL, 'as billed'),
        ('Credit', 'Credit', NULL, NULL, NULL, 'as billed'),
        ('Refund', 'Adjustment', NULL, NULL, NULL, 'as billed'),
        ('Discount', 'Credit', NULL, NULL, NULL, 'as billed'),
        ('EdpDiscount', 'Credit', NULL, NULL, NULL, 'as billed'),
        ('BundledDiscount', 'Credit', NULL, NULL, NULL, 'as billed'),
        ('PrivateRateDiscount', 'Credit', NULL, NULL, NULL, 'as billed')
),
report AS (
    SELECT
        coalesce(bool_or(line_item_net_unblended_cost IS NOT NULL), false) AS is_net, max(source_row) AS last_row
    FROM export_row
),
-- Recurring fees come twice: as what they bill, and as what of their commitment was left unused.
doubled AS (
    SELECT *, false AS is_unused FROM export_row
    UNION ALL BY NAME
    SELECT *, true AS is_unused FROM export_row WHERE line_item_line_item_type IN ('SavingsPlanRecurringFee', 'RIFee')
),
-- The maps of tags, which repeat from line to line: each is rewritten once, its keys as AWS writes them.
map_text AS (
    SELECT
        tags, resource_tags, cost_category,
        nullif(coalesce(
            regexp_replace(
                regexp_replace(tags, '([{,]\s*")resourceTags/aws:', '\1aws:', 'g'), '([{,]\s*")resourceTags/', '\1user:', 'g'
            ),
            regexp_replace(resource_tags, '([{,]\s*")(user|aws)_', '\1\2:', 'g')
        ), '{}') AS map_tags,
        nullif(regexp_replace(cost_category, '([{,]\s*")', '\1costCategory/', 'g'), '{}') AS categories
    FROM (SELECT DISTINCT tags, resource_tags, cost_category FROM export_row)
),
map_tag AS (
    SELECT
        *,
        CASE
            WHEN categories IS NULL THEN map_tags
            ELSE TRY(CAST(json_merge_patch(json_merge_patch('{}', coalesce(map_tags, '{}')), categories) AS VARCHAR))
        END AS maps
    FROM map_text
),
typed AS (
    SELECT
        e.*, m.map_tags, m.categories, m.maps, r.is_net, r.last_row,
        t.frequency, t.status, coalesce(t.category, 'Adjustment') AS category, t.costs,
        split_line_item_parent_resource_id IS NOT NULL AND line_item_unblended_cost = 0 AS is_split,
        -- The region's prefix (USE2-) is left out in us-east-1. A refund is a negative line of the same usage type.
        line_item_line_item_type IN ('Usage', 'Fee', 'Refund')
            AND coalesce(contains(line_item_usage_type, 'CapacityBlockFee:'), false) AS is_block,
        CASE
            -- AWS amortises no reserved Dedicated Hosts: they cost what is billed, at no commitment.
            WHEN t.program = 'Reserved Instance' AND regexp_matches(line_item_usage_type, '(^|-)Host(Box)?Usage:') THEN NULL
            WHEN line_item_line_item_type = 'Fee' AND reservation_reservation_a_r_n IS NOT NULL THEN 'Reserved Instance'
            ELSE t.program
        END AS program,
        CASE
            WHEN is_unused THEN 0
            WHEN NOT r.is_net THEN line_item_unblended_cost
            WHEN ends_with(line_item_line_item_type, 'Discount') THEN 0
            ELSE coalesce(line_item_net_unblended_cost, line_item_unblended_cost)
        END AS cost,
        CASE
            WHEN NOT is_unused THEN NULL
            WHEN line_item_line_item_type = 'SavingsPlanRecurringFee'
            THEN savings_plan_total_commitment_to_date - savings_plan_used_commitment
            WHEN r.is_net AND coalesce(
                reservation_net_unused_amortized_upfront_fee_for_billing_period, reservation_net_unused_recurring_fee
            ) IS NOT NULL
            THEN coalesce(reservation_net_unused_amortized_upfront_fee_for_billing_period, 0)
                + coalesce(reservation_net_unused_recurring_fee, 0)
            ELSE coalesce(
                reservation_unused_amortized_upfront_fee_for_billing_period + reservation_unused_recurring_fee,
                reservation_unused_amortized_upfront_fee_for_billing_period, reservation_unused_recurring_fee
            )
        END AS unused_cost,
        -- A plan's fees before and after the discount, in units of 10^-9.
        CASE WHEN is_unused THEN CAST(1000000000 * (savings_plan_recurring_commitment_for_billing_period
            + coalesce(savings_plan_amortized_upfront_commitment_for_billing_period, 0)) AS HUGEINT) END AS gross,
        CASE WHEN is_unused THEN CAST(1000000000 * (savings_plan_net_recurring_commitment_for_billing_period
            + coalesce(savings_plan_net_amortized_upfront_commitment_for_billing_period, 0)) AS HUGEINT) END AS net
    FROM doubled AS e
    CROSS JOIN report AS r
    LEFT JOIN line_type AS t USING (line_item_line_item_type)
    LEFT JOIN map_tag AS m
        ON e.tags IS NOT DISTINCT FROM m.tags AND e.resource_tags IS NOT DISTINCT FROM m.resource_tags
        AND e.cost_category IS NOT DISTINCT FROM m.cost_category
),
priced AS (
    SELECT
        * EXCLUDE (tags),
        CASE
            WHEN is_split AND is_net
            THEN coalesce(split_line_item_net_split_cost + coalesce(split_line_item_net_unused_cost, 0),
                split_line_item_split_cost + coalesce(split_line_item_unused_cost, 0))
            WHEN is_split THEN split_line_item_split_cost + coalesce(split_line_item_unused_cost, 0)
            -- AWS says what was left of a plan before the discount only: the discount of its fees is the plan's.
            WHEN is_unused AND is_net AND line_item_line_item_type = 'SavingsPlanRecurringFee' AND net IS NOT NULL AND gross > 0
            THEN CAST(
                CAST(CAST(unused_cost * 1000000000000 AS HUGEINT) * net // gross AS DECIMAL(26, 0))
                * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12)
            )
            WHEN is_unused THEN unused_cost
            WHEN is_block OR (line_item_line_item_type = 'Fee' AND program IS NOT NULL) THEN 0
            WHEN program IS NULL THEN cost
            WHEN costs = 'nothing' THEN 0
            WHEN costs = 'plan' AND is_net
            THEN coalesce(savings_plan_net_savings_plan_effective_cost, savings_plan_savings_plan_effective_cost)
            WHEN costs = 'plan' THEN savings_plan_savings_plan_effective_cost
            WHEN costs = 'reservation' AND is_net THEN coalesce(reservation_net_effective_cost, reservation_effective_cost)
            WHEN costs = 'reservation' THEN reservation_effective_cost
            ELSE cost
        END AS effective,
        CASE
            WHEN is_split OR is_block OR program IS NULL THEN NULL
            WHEN program = 'Savings Plan' THEN coalesce(savings_plan_savings_plan_a_r_n, 'a Savings Plan without a name')
            ELSE coalesce(reservation_reservation_a_r_n, 'a reservation without a name')
        END AS commitment,
        CASE
            WHEN is_split THEN split_line_item_split_usage
            WHEN is_unused THEN NULL
            WHEN line_item_line_item_type = 'SavingsPlanNegation' THEN 0
            -- Marks the whole reservation, whose used and unused hours have lines of their own.
            WHEN starts_with(line_item_usage_type, 'Reservation:') OR contains(line_item_usage_type, '-Reservation:')
                OR lower(capacity_reservation_capacity_reservation_status) = 'reserved' THEN NULL
            ELSE line_item_usage_amount
        END AS quantity,
        category = 'Usage' AND NOT is_block AND NOT is_split AS is_usage,
        -- Idle hours of a capacity reservation have its ARN as resource, in reports without the columns of reservations too.
        contains(line_item_resource_id, ':capacity-reservation/')
            AND regexp_matches(line_item_usage_type, '(^|-)Unused(Box|Ded):') AS is_idle,
        coalesce(capacity_reservation_capacity_reservation_arn, CASE WHEN is_idle THEN line_item_resource_id END) AS reservation,
        CASE WHEN is_block THEN regexp_extract(line_item_usage_type, 'CapacityBlockFee:(.*)$', 1) END AS block_type,
        coalesce(product_region_code, product_region, regexp_extract(line_item_availability_zone, '^(.*\d)[a-z]$', 1))
            AS region,
        TRY(json_extract_string(product, ['$.instance_type', '$.gpu', '$.product_name'])) AS attribute,
        -- Tags with columns of their own (only those names have a colon or a slash); the maps come after them.
        CASE WHEN length(concat(*COLUMNS('[:/]'))) > 0
            THEN CAST(json_merge_patch('{}', to_json(struct_pack(*COLUMNS('[:/]')))) AS VARCHAR)
        END AS column_tags
    FROM typed
),
tagged AS (
    SELECT
        * REPLACE (
            CASE WHEN is_unused THEN commitment ELSE line_item_resource_id END AS line_item_resource_id,
            CASE WHEN is_unused THEN 'Usage' ELSE category END AS category,
            CASE WHEN is_unused THEN 'Usage-Based' ELSE frequency END AS frequency,
            CASE WHEN is_unused THEN 'Unused' ELSE status END AS status
        ),
        CASE
            WHEN column_tags IS NULL THEN maps
            ELSE TRY(CAST(json_merge_patch(
                json_merge_patch(column_tags, coalesce(map_tags, '{}')), coalesce(categories, '{}')
            ) AS VARCHAR))
        END AS tag
    FROM priced
    -- What is unknown of an unused part stays: it is refused, since nobody can say what it costs.
    WHERE NOT is_unused OR (commitment IS NOT NULL AND effective IS DISTINCT FROM 0)
)
SELECT
    CASE WHEN is_unused THEN source_row + last_row ELSE source_row END AS source_row, part,
    CASE WHEN is_unused THEN coalesce(part_row, source_row) ELSE part_row END AS part_row,
    'AWS' AS provider, 'AWS' AS host_provider,
    coalesce(bill_invoicing_entity, line_item_legal_entity, 'Amazon Web Services, Inc.') AS invoice_issuer,
    bill_payer_account_id AS billing_account_id, line_item_usage_account_id AS sub_account_id,
    line_item_usage_account_name AS sub_account_name,
    CASE WHEN lower(bill_invoice_id) <> 'estimated' THEN bill_invoice_id END AS invoice_id,
    bill_billing_period_start_date AS billing_period_start, bill_billing_period_end_date AS billing_period_end,
    line_item_usage_start_date AS charge_period_start, line_item_usage_end_date AS charge_period_end,
    CASE WHEN is_block THEN 'Purchase' ELSE category END AS charge_category,
    CASE WHEN is_block THEN 'One-Time' ELSE frequency END AS charge_frequency,
    line_item_line_item_description AS charge_description,
    CASE WHEN is_split THEN effective ELSE cost END AS billed_cost, effective AS effective_cost,
    CASE WHEN NOT is_usage THEN NULL WHEN costs = 'nothing' THEN 0 ELSE pricing_public_on_demand_cost END AS list_cost,
    CASE WHEN is_usage AND line_item_line_item_type IN ('Usage', 'SavingsPlanCoveredUsage') THEN cost END AS contracted_cost,
    line_item_currency_code AS billing_currency,
    CASE
        WHEN is_unused THEN 'Committed'
        WHEN NOT is_usage THEN NULL
        -- Covered usage is billed at the on-demand price before it is taken back.
        WHEN program = 'Savings Plan' THEN 'Standard'
        WHEN commitment IS NOT NULL THEN 'Committed'
        WHEN pricing_term = 'Spot' OR contains(line_item_usage_type, 'SpotUsage') THEN 'Dynamic'
        WHEN pricing_term = 'OnDemand' THEN 'Standard'
    END AS pricing_category,
    quantity AS pricing_quantity, pricing_unit,
    CASE WHEN category = 'Usage' AND NOT is_block THEN quantity END AS consumed_quantity,
    CASE WHEN category = 'Usage' AND NOT is_block THEN pricing_unit END AS consumed_unit,
    CASE WHEN is_block
        THEN 'capacity-block:' || coalesce(region, 'unknown') || '/' || block_type || '/'
            || strftime(line_item_usage_start_date, '%Y-%m-%d')
        ELSE commitment
    END AS commitment_discount_id,
    CASE WHEN is_block THEN 'Capacity Block' WHEN commitment IS NOT NULL THEN program END AS commitment_discount_type,
    CASE WHEN commitment IS NULL THEN NULL WHEN program = 'Savings Plan' THEN 'Spend' ELSE 'Usage' END
        AS commitment_discount_category,
    CASE WHEN commitment IS NOT NULL THEN status END AS commitment_discount_status,
    reservation AS capacity_reservation_id,
    CASE
        WHEN reservation IS NULL OR is_split THEN NULL
        WHEN lower(capacity_reservation_capacity_reservation_status) = 'used' THEN 'Used'
        -- A reservation that is cancelled before it begins is paid and held by nobody.
        WHEN lower(capacity_reservation_capacity_reservation_status) IN ('unused', 'cancelled') OR is_idle THEN 'Unused'
    END AS capacity_reservation_status,
    CASE WHEN is_split THEN split_line_item_parent_resource_id ELSE line_item_resource_id END AS resource_id,
    product_product_family AS resource_type, region AS region_id, line_item_availability_zone AS availability_zone,
    coalesce(product_product_name, attribute[3], line_item_product_code) AS service_name,
    -- A pod's line has a SKU of its own kind, which prices no part of the instance.
    CASE WHEN NOT is_split THEN product_sku END AS sku_id, CASE WHEN NOT is_split THEN pricing_rate_code END AS sku_price_id,
    line_item_usage_type AS sku_meter, coalesce(product_instance_type, attribute[1], block_type) AS x_instance_type,
    TRY_CAST(coalesce(product_gpu, attribute[2]) AS INTEGER) AS x_gpu_count,
    CASE WHEN is_block THEN 'capacity_block' ELSE 'export' END AS x_origin,
    line_item_line_item_type AS x_line_type, is_split AS x_is_split_row,
    CASE WHEN is_split THEN 'AWS split cost allocation' END AS allocated_method_id,
    CASE WHEN is_split THEN line_item_resource_id END AS allocated_resource_id,
    CASE WHEN is_split THEN tag END AS allocated_tags, CASE WHEN NOT is_split THEN tag END AS tags
FROM tagged
