-- Purpose: a Cost and Usage Report (CUR 2.0) of a busy month: 111 columns as Data Exports types them in Parquet, costs as doubles,
--   times without a zone, tags and product attributes as maps. Usage on demand, under a Savings Plan (with its Negation
--   lines) and under a reservation, and fees, of 2,000 resources in 30 accounts.
-- Source: AWS Data Exports table dictionary (CUR 2.0)
-- Grain: line
-- Reads: nothing

WITH line AS (
    SELECT
        n, hash(n) AS h, (n // 2) % 2000 AS resource,
        -- A covered line is followed by the one that takes it back.
        CASE n % 20
            WHEN 10 THEN 'SavingsPlanCoveredUsage' WHEN 11 THEN 'SavingsPlanNegation' WHEN 12 THEN 'DiscountedUsage'
            WHEN 13 THEN CASE WHEN n % 20000 = 13 THEN 'Fee' ELSE 'Usage' END ELSE 'Usage'
        END AS line_type,
        n % 20 IN (10, 11) AS is_planned,
        TIMESTAMP '2026-05-01 00:00:00' + to_hours(CAST((n // 20) % 744 AS INTEGER)) AS starts,
        ['p5.48xlarge', 'p4d.24xlarge', 'g5.xlarge', 'g6e.12xlarge', 'm7i.large', 'c7g.4xlarge'][1 + resource % 6] AS machine,
        ['us-east-1', 'us-west-2', 'eu-central-1'][1 + resource % 3] AS region,
        CAST(3 + resource % 4000 AS DOUBLE) / 128 AS price,
        'arn:aws:savingsplans::000012345678:savingsplan/' || (resource % 5) AS plan,
        'arn:aws:ec2:us-east-1:000012345678:reserved-instances/' || (resource % 7) AS reservation
    FROM (SELECT range AS n FROM range($rows))
),
priced AS (
    SELECT
        *, CASE WHEN is_planned THEN 1.0 ELSE round((1 + h % 3600) / 3600.0, 10) END AS amount,
        round(price * CASE WHEN is_planned THEN 1.0 ELSE round((1 + h % 3600) / 3600.0, 10) END, 10) AS charged
    FROM line
),
cost AS (
    SELECT
        *,
        CASE line_type WHEN 'SavingsPlanNegation' THEN -charged WHEN 'DiscountedUsage' THEN 0.0 ELSE charged END AS unblended
    FROM priced
)
SELECT
    'Anniversary' AS bill_bill_type, 'AWS' AS bill_billing_entity,
    TIMESTAMP_MS '2026-06-01 00:00:00' AS bill_billing_period_end_date,
    TIMESTAMP_MS '2026-05-01 00:00:00' AS bill_billing_period_start_date,
    '1762345678' AS bill_invoice_id, 'Amazon Web Services, Inc.' AS bill_invoicing_entity,
    '000012345678' AS bill_payer_account_id, 'Payer' AS bill_payer_account_name,
    CAST(NULL AS VARCHAR) AS capacity_reservation_capacity_reservation_arn,
    CAST(NULL AS VARCHAR) AS capacity_reservation_capacity_reservation_status,
    CAST(NULL AS VARCHAR) AS capacity_reservation_capacity_reservation_type,
    MAP {'cost_centre': 'cc-' || (resource % 40)} AS cost_category,
    MAP(['edp'], [0.0]) AS discount, CAST(NULL AS DOUBLE) AS discount_bundled_discount,
    CAST(NULL AS DOUBLE) AS discount_total_discount,
    md5(CAST(resource AS VARCHAR)) AS identity_line_item_id,
    strftime(starts, '%Y-%m-%dT%H:%M:%SZ/') || strftime(starts + INTERVAL 1 HOUR, '%Y-%m-%dT%H:%M:%SZ') AS identity_time_interval,
    region || 'a' AS line_item_availability_zone, charged AS line_item_blended_cost,
    CAST(price AS VARCHAR) AS line_item_blended_rate, 'USD' AS line_item_currency_code,
    'Amazon Web Services, Inc.' AS line_item_legal_entity,
    '$' || price || ' per On Demand Linux ' || machine || ' Instance Hour' AS line_item_line_item_description,
    line_type AS line_item_line_item_type, CAST(NULL AS DOUBLE) AS line_item_net_unblended_cost,  -- tidy: money_in_float - as AWS writes it
    CAST(NULL AS VARCHAR) AS line_item_net_unblended_rate,
    CASE WHEN is_planned OR line_type = 'DiscountedUsage' THEN 8.0 ELSE 1.0 END AS line_item_normalization_factor,
    amount AS line_item_normalized_usage_amount, 'RunInstances:0002' AS line_item_operation, 'AmazonEC2' AS line_item_product_code,
    'i-' || substr(md5(CAST(resource AS VARCHAR)), 1, 17) AS line_item_resource_id, CAST(NULL AS VARCHAR) AS line_item_tax_type,
    unblended AS line_item_unblended_cost, CAST(price AS VARCHAR) AS line_item_unblended_rate,
    CAST(100000000000 + resource % 30 AS VARCHAR) AS line_item_usage_account_id, 'team-' || (resource % 30) AS line_item_usage_account_name,
    amount AS line_item_usage_amount, CAST(starts + INTERVAL 1 HOUR AS TIMESTAMP_MS) AS line_item_usage_end_date,
    CAST(starts AS TIMESTAMP_MS) AS line_item_usage_start_date, 'BoxUsage:' || machine AS line_item_usage_type,
    'USD' AS pricing_currency, CAST(NULL AS VARCHAR) AS pricing_lease_contract_length, CAST(NULL AS VARCHAR) AS pricing_offering_class,
    charged AS pricing_public_on_demand_cost, CAST(price AS VARCHAR) AS pricing_public_on_demand_rate,
    CAST(NULL AS VARCHAR) AS pricing_purchase_option, substr(md5(machine), 1, 10) || '.JRTCKXETXF.6YS6EN2CT7' AS pricing_rate_code,
    CAST(resource % 500 AS VARCHAR) AS pricing_rate_id, 'OnDemand' AS pricing_term, 'Hrs' AS pricing_unit,
    MAP {
        'instance_type': machine, 'vcpu': '192', 'memory': '2048 GiB', 'operating_system': 'Linux', 'tenancy': 'Shared',
        'region': region, 'product_name': 'Amazon Elastic Compute Cloud', 'gpu': '8', 'physical_processor': 'Intel Xeon'
    } AS product,
    CAST(NULL AS VARCHAR) AS product_comment, CAST(NULL AS VARCHAR) AS product_fee_code,
    CAST(NULL AS VARCHAR) AS product_fee_description, CAST(NULL AS VARCHAR) AS product_from_location,
    CAST(NULL AS VARCHAR) AS product_from_location_type, CAST(NULL AS VARCHAR) AS product_from_region_code,
    split_part(machine, '.', 1) AS product_instance_family, machine AS product_instance_type, 'BoxUsage' AS product_instancesku,
    region AS product_location, 'AWS Region' AS product_location_type, 'RunInstances:0002' AS product_operation,
    CAST(NULL AS VARCHAR) AS product_pricing_unit, 'Compute Instance' AS product_product_family, region AS product_region_code,
    'AmazonEC2' AS product_servicecode, substr(md5(machine), 1, 16) AS product_sku, CAST(NULL AS VARCHAR) AS product_to_location,
    CAST(NULL AS VARCHAR) AS product_to_location_type, CAST(NULL AS VARCHAR) AS product_to_region_code,
    'BoxUsage:' || machine AS product_usagetype,
    CAST(NULL AS DOUBLE) AS reservation_amortized_upfront_cost_for_usage,
    CAST(NULL AS DOUBLE) AS reservation_amortized_upfront_fee_for_billing_period, '' AS reservation_availability_zone,
    CASE WHEN line_type = 'DiscountedUsage' THEN round(charged * 0.6, 10) END AS reservation_effective_cost,
    CAST(NULL AS VARCHAR) AS reservation_end_time, CAST(NULL AS VARCHAR) AS reservation_modification_status,
    CAST(NULL AS DOUBLE) AS reservation_net_amortized_upfront_cost_for_usage,
    CAST(NULL AS DOUBLE) AS reservation_net_amortized_upfront_fee_for_billing_period,
    CAST(NULL AS DOUBLE) AS reservation_net_effective_cost, CAST(NULL AS DOUBLE) AS reservation_net_recurring_fee_for_usage,  -- tidy: money_in_float - as AWS writes it
    CAST(NULL AS DOUBLE) AS reservation_net_unused_amortized_upfront_fee_for_billing_period,
    CAST(NULL AS DOUBLE) AS reservation_net_unused_recurring_fee, CAST(NULL AS DOUBLE) AS reservation_net_upfront_value,
    CAST(NULL AS VARCHAR) AS reservation_normalized_units_per_reservation, CAST(NULL AS VARCHAR) AS reservation_number_of_reservations,
    CAST(NULL AS DOUBLE) AS reservation_recurring_fee_for_usage,
    CASE WHEN line_type = 'DiscountedUsage' THEN reservation END AS reservation_reservation_a_r_n,
    CAST(NULL AS VARCHAR) AS reservation_start_time, CAST(NULL AS VARCHAR) AS reservation_subscription_id,
    CAST(NULL AS VARCHAR) AS reservation_total_reserved_normalized_units, CAST(NULL AS VARCHAR) AS reservation_total_reserved_units,
    CAST(NULL AS VARCHAR) AS reservation_units_per_reservation,
    CAST(NULL AS DOUBLE) AS reservation_unused_amortized_upfront_fee_for_billing_period,
    CAST(NULL AS DOUBLE) AS reservation_unused_normalized_unit_quantity, CAST(NULL AS DOUBLE) AS reservation_unused_quantity,
    CAST(NULL AS DOUBLE) AS reservation_unused_recurring_fee, CAST(NULL AS DOUBLE) AS reservation_upfront_value,
    MAP {
        'user_team': 'team-' || (resource % 30), 'user_env': ['prod', 'dev', 'test'][1 + resource % 3],
        'user_project': 'project-' || (resource % 90), 'aws_created_by': 'AssumedRole:' || (resource % 30)
    } AS resource_tags,
    CAST(NULL AS DOUBLE) AS savings_plan_amortized_upfront_commitment_for_billing_period,
    CAST(NULL AS VARCHAR) AS savings_plan_end_time, CAST(NULL AS VARCHAR) AS savings_plan_instance_type_family,
    CAST(NULL AS DOUBLE) AS savings_plan_net_amortized_upfront_commitment_for_billing_period,
    CAST(NULL AS DOUBLE) AS savings_plan_net_recurring_commitment_for_billing_period,
    CAST(NULL AS DOUBLE) AS savings_plan_net_savings_plan_effective_cost, CAST(NULL AS VARCHAR) AS savings_plan_offering_type,  -- tidy: money_in_float - as AWS writes it
    CAST(NULL AS VARCHAR) AS savings_plan_payment_option, CAST(NULL AS VARCHAR) AS savings_plan_purchase_term,
    CAST(NULL AS DOUBLE) AS savings_plan_recurring_commitment_for_billing_period, CAST(NULL AS VARCHAR) AS savings_plan_region,
    CASE WHEN is_planned THEN plan END AS savings_plan_savings_plan_a_r_n,
    CASE WHEN line_type = 'SavingsPlanCoveredUsage' THEN round(charged * 0.7, 10) END AS savings_plan_savings_plan_effective_cost,
    CASE WHEN is_planned THEN round(price * 0.7, 10) END AS savings_plan_savings_plan_rate,
    CAST(NULL AS VARCHAR) AS savings_plan_start_time, CAST(NULL AS DOUBLE) AS savings_plan_total_commitment_to_date,
    CAST(NULL AS DOUBLE) AS savings_plan_used_commitment
FROM cost
