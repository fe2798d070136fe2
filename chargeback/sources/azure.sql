-- Purpose: Azure's cost details as charges. Quantities are in units of measure, prices in the pricing currency, costs in that of
--   the bill. A retail price of 0 for something that costs more is what Azure writes for unknown. There is no tax.
--   An instance of a scale set has the resource id that it has in Azure and Kubernetes, `.../virtualMachines/<number>`. The
--   unused part of a commitment, or of reserved capacity, has that as its resource. What the file says stays beside it.
-- Source: Azure's schemas of cost and usage details; FOCUS conversion rules of Microsoft's FinOps documentation
-- Grain: source_row
-- Reads: azure_line, azure_pair, azure_unit

WITH charged AS (
    SELECT
        l.*, p.billed_cost, p.effective_cost, p.missing, u.block_size, u.unit,
        starts_with(l.type, 'unused') AS is_unused,
        CASE
            WHEN l.type IN ('usage', 'unusedreservation', 'unusedsavingsplan') THEN 'Usage'
            WHEN l.type IN ('purchase', 'refund') THEN 'Purchase'
            WHEN l.type = 'roundingadjustment' THEN 'Adjustment'
            WHEN l.type = 'tax' THEN 'Tax'
            WHEN l.type = 'credit' THEN 'Credit'
            ELSE l.charge_type
        END AS category,
        lower(l.info ->> '$.VMCapacityReservationId') AS reservation,
        contains(lower(l.resource_id), '/capacityreservations/') AS is_unused_capacity,
        l.info ->> '$.VMName' AS machine,
        TRY_CAST(l.info ->> '$.RINormalizationRatio' AS DECIMAL(18, 6)) AS ratio,
        CAST(TRY(l.unit_price * coalesce(l.exchange_rate, 1)) AS DECIMAL(38, 12)) AS billed_unit_price,
        CAST(TRY(l.payg_price * coalesce(l.exchange_rate, 1)) AS DECIMAL(38, 12)) AS retail_unit_price,
        CAST(TRY(l.quantity * u.block_size) AS DECIMAL(38, 12)) AS counted
    FROM azure_pair AS p
    JOIN azure_line AS l USING (source_row)
    LEFT JOIN azure_unit AS u ON u.unit_of_measure = lower(trim(l.unit_of_measure))
),
priced AS (
    SELECT
        *, category = 'Usage' AND NOT is_unused AS is_used,
        CASE WHEN NOT is_unused AND (retail_unit_price <> 0 OR greatest(billed_cost, effective_cost) <= 0)
            THEN retail_unit_price END AS list_price,
        CASE WHEN NOT is_unused AND (billed_unit_price <> 0 OR greatest(billed_cost, effective_cost) <= 0)
            THEN billed_unit_price END AS own_price,
        CASE
            WHEN is_unused THEN commitment
            WHEN reservation IS NOT NULL AND is_unused_capacity THEN reservation
            WHEN regexp_matches(lower(resource_id), '/virtualmachinescalesets/[^/]+$') AND regexp_matches(machine, '_\d+$')
            THEN lower(resource_id) || '/virtualmachines/' || regexp_extract(machine, '_(\d+)$', 1)
            ELSE lower(resource_id)
        END AS resource
    FROM charged
)
SELECT
    source_row, part, part_row,
    'Microsoft' AS provider, 'Microsoft' AS invoice_issuer, 'Microsoft' AS host_provider,
    coalesce(billing_profile_id, billing_account_id) AS billing_account_id,
    subscription_id AS sub_account_id, nullif(subscription_name, 'Unassigned') AS sub_account_name, invoice_id,
    period_from AS billing_period_start, period_to AS billing_period_end,
    charge_day AS charge_period_start, charge_day + INTERVAL 1 DAY AS charge_period_end,
    category AS charge_category, CASE WHEN type = 'refund' THEN 'Correction' END AS charge_class,
    CASE lower(frequency)
        WHEN 'usagebased' THEN 'Usage-Based' WHEN 'onetime' THEN 'One-Time' WHEN 'recurring' THEN 'Recurring'
    END AS charge_frequency,
    product AS charge_description, CAST(billed_cost AS DECIMAL(38, 12)) AS billed_cost,
    CAST(effective_cost AS DECIMAL(38, 12)) AS effective_cost,
    CAST(TRY(list_price * quantity) AS DECIMAL(38, 12)) AS list_cost,
    CAST(TRY(own_price * quantity) AS DECIMAL(38, 12)) AS contracted_cost,
    list_price AS list_unit_price, own_price AS contracted_unit_price,
    billing_currency, coalesce(pricing_currency, billing_currency) AS pricing_currency,
    CASE WHEN pricing_currency = 'USD' THEN exchange_rate END AS x_fx_rate,
    CASE model
        WHEN 'ondemand' THEN 'Standard' WHEN 'spot' THEN 'Dynamic' WHEN 'reservation' THEN 'Committed'
        WHEN 'savingsplan' THEN 'Committed'
    END AS pricing_category,
    quantity AS pricing_quantity, trim(unit_of_measure) AS pricing_unit,
    CASE WHEN is_used THEN counted END AS consumed_quantity, CASE WHEN is_used THEN unit END AS consumed_unit,
    commitment AS commitment_discount_id,
    CASE WHEN is_committed AND category = 'Usage' THEN CASE WHEN is_unused THEN 'Unused' ELSE 'Used' END END
        AS commitment_discount_status,
    CASE WHEN is_committed THEN CASE WHEN is_plan THEN 'Savings Plan' ELSE 'Reservation' END END AS commitment_discount_type,
    CASE WHEN is_committed THEN CASE WHEN is_plan THEN 'Spend' ELSE 'Usage' END END AS commitment_discount_category,
    CASE WHEN is_committed AND is_used THEN CAST(TRY(counted * ratio) AS DECIMAL(38, 12)) END AS commitment_discount_quantity,
    CASE WHEN is_committed AND is_used AND ratio IS NOT NULL THEN 'Normalized ' || unit END AS commitment_discount_unit,
    CASE WHEN category = 'Usage' THEN reservation END AS capacity_reservation_id,
    CASE WHEN category = 'Usage' AND reservation IS NOT NULL
        THEN CASE WHEN is_unused_capacity THEN 'Unused' ELSE 'Used' END END AS capacity_reservation_status,
    resource AS resource_id,
    CASE WHEN is_unused THEN coalesce(benefit_name, reservation_name, resource_name) ELSE coalesce(machine, resource_name) END
        AS resource_name,
    nullif(regexp_extract(resource_id, '/providers/([^/]+/[^/]+)/', 1), '') AS resource_type,
    lower(replace(resource_location, ' ', '')) AS region_id,
    CASE WHEN meter_category = 'Virtual Machines' THEN 'Compute' END AS service_category,
    coalesce(meter_category, consumed_service) AS service_name,
    meter_id AS sku_id, coalesce(part_number, product_id) AS sku_price_id, meter_name AS sku_meter,
    info ->> '$.ServiceType' AS x_instance_type,
    -- Enterprise Agreements leave the braces out.
    CASE WHEN NOT json_valid(tags) AND json_valid('{' || tags || '}') THEN '{' || tags || '}' ELSE tags END AS tags,
    cost_center AS x_cost_center, concat_ws(' ', charge_type, missing) AS x_line_type,
    CASE WHEN resource <> lower(resource_id) THEN resource_id END AS x_stated_resource_id,
    CASE WHEN commitment <> coalesce(benefit_id, reservation_id) THEN coalesce(benefit_id, reservation_id) END
        AS x_stated_commitment_id,
    'export' AS x_origin, false AS x_is_split_row
FROM priced
