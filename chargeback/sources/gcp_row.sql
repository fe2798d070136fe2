-- Purpose: rows of Google Cloud's billing export, nested or flattened, as one shape, with their credits summed inside the row:
--   joined to the row, each credit would repeat its cost. A promotional credit is a payment, any other lowers a price.
--   What cannot be read is NULL; a row without an amount, month or time is refused once it is a charge.
-- Grain: source_row
-- Reads: export_row

WITH whole AS (
    SELECT
        * REPLACE (
            CASE WHEN json_valid(invoice_record) THEN invoice_record END AS invoice_record,
            CASE WHEN json_valid(service_record) THEN service_record END AS service_record,
            CASE WHEN json_valid(sku_record) THEN sku_record END AS sku_record,
            CASE WHEN json_valid(project_record) THEN project_record END AS project_record,
            CASE WHEN json_valid(location_record) THEN location_record END AS location_record,
            CASE WHEN json_valid(usage_record) THEN usage_record END AS usage_record,
            CASE WHEN json_valid(adjustment_info_record) THEN adjustment_info_record END AS adjustment_info_record,
            CASE WHEN json_valid(resource_record) THEN resource_record END AS resource_record,
            CASE WHEN json_valid(subscription_record) THEN subscription_record END AS subscription_record,
            CASE WHEN json_valid(consumption_model_record) THEN consumption_model_record END AS consumption_model_record,
            CASE WHEN json_valid(labels) THEN labels END AS labels,
            CASE WHEN json_valid(tags) THEN tags END AS tags,
            CASE WHEN json_valid(system_labels) THEN system_labels END AS system_labels,
            CASE WHEN json_valid(project_labels) THEN project_labels END AS project_labels,
            -- Some tools write lists with apostrophes. Text that has quotation marks of its own is not guessed at.
            CASE
                WHEN credits IS NULL THEN '[]'
                WHEN json_valid(credits) THEN credits
                WHEN NOT contains(credits, '"') AND json_valid(replace(credits, '''', '"')) THEN replace(credits, '''', '"')
            END AS credits
        )
    FROM export_row
),
flat AS (
    SELECT
        source_row, part, part_row, billing_account_id, currency, currency_conversion_rate, cost, cost_at_list,
        cost_at_effective_price_default, labels, tags, system_labels,
        lower(coalesce(cost_type, 'regular')) AS cost_type,
        coalesce(invoice_month, invoice_record ->> '$.month') AS invoice_month,
        usage_start_text, usage_end_text,
        coalesce(service_id, service_record ->> '$.id') AS service_id,
        coalesce(service_description, service_record ->> '$.description') AS service,
        coalesce(sku_id, sku_record ->> '$.id') AS sku_id,
        coalesce(sku_description, sku_record ->> '$.description') AS sku,
        coalesce(project_id, project_record ->> '$.id') AS project_id,
        coalesce(project_name, project_record ->> '$.name') AS project_name,
        coalesce(project_labels, project_record ->> '$.labels') AS project_labels,
        coalesce(location_region, location_record ->> '$.region', location_location, location_record ->> '$.location')
            AS region,
        coalesce(location_zone, location_record ->> '$.zone') AS zone,
        TRY_CAST(coalesce(usage_amount, usage_record ->> '$.amount') AS DECIMAL(38, 12)) AS consumed,
        coalesce(usage_unit, usage_record ->> '$.unit') AS consumed_unit,
        TRY_CAST(
            coalesce(usage_amount_in_pricing_units, usage_record ->> '$.amount_in_pricing_units') AS DECIMAL(38, 12)
        ) AS priced,
        coalesce(usage_pricing_unit, usage_record ->> '$.pricing_unit') AS priced_unit,
        coalesce(
            adjustment_info_id, adjustment_info_description, adjustment_info_mode, adjustment_info_type,
            adjustment_info_record ->> '$.id', adjustment_info_record ->> '$.description',
            adjustment_info_record ->> '$.mode', adjustment_info_record ->> '$.type'
        ) IS NOT NULL AS is_adjustment,
        coalesce(resource_name, resource_record ->> '$.name') AS resource_name,
        coalesce(resource_global_name, resource_record ->> '$.global_name') AS resource_global_name,
        coalesce(subscription_instance_id, subscription_record ->> '$.instance_id') AS subscription,
        coalesce(consumption_model_description, consumption_model_record ->> '$.description', 'Default') AS price_model,
        json_transform(credits, '[{"amount": "VARCHAR", "type": "VARCHAR"}]') AS credit_texts
    FROM whole
),
credited AS (
    -- One amount that is no number makes the whole list unreadable: the others are not the row's credits.
    SELECT
        * EXCLUDE (credit_texts),
        CASE WHEN coalesce(list_bool_and([
            coalesce(regexp_full_match(c.amount, '-?\d{1,20}(\.\d+)?([eE][-+]?\d{1,2})?'), false)
            AND TRY_CAST(c.amount AS DECIMAL(38, 12)) IS NOT NULL
            FOR c IN credit_texts
        ]), true) THEN [
            {'type': coalesce(c.type, ''), 'amount': TRY_CAST(c.amount AS DECIMAL(38, 12))} FOR c IN credit_texts
        ] END AS credits
    FROM flat
)
SELECT
    * EXCLUDE (credits),
    -- Unreadable credits must not look like none: they make the discount, and so the row's cost, NULL.
    coalesce(list_sum([c.amount FOR c IN credits IF c.type IN ('PROMOTION', 'CREDIT_TYPE_UNSPECIFIED')]), 0) AS promotion,
    CASE WHEN credits IS NOT NULL THEN
        coalesce(list_sum([c.amount FOR c IN credits IF c.type NOT IN ('PROMOTION', 'CREDIT_TYPE_UNSPECIFIED')]), 0)
    END AS discount,
    coalesce(list_sum([c.amount FOR c IN credits IF c.type = 'COMMITTED_USAGE_DISCOUNT_DOLLAR_BASE']), 0) AS spend_credit,
    coalesce(list_sum([c.amount FOR c IN credits IF c.type = 'COMMITTED_USAGE_DISCOUNT']), 0) AS resource_credit,
    coalesce(list_contains([c.type FOR c IN credits], 'FEE_UTILIZATION_OFFSET'), false) AS has_offset,
    CASE WHEN len(credits) > 0 THEN CAST(to_json(credits) AS VARCHAR) END AS credit_json
FROM credited
