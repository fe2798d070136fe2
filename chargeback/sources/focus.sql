-- Purpose: FOCUS rows as charges. Enumerated words get FOCUS's spelling, tag keys lose blanks around them.
--   What a provider writes for "unknown" becomes NULL: list and contracted cost of 0 for something that costs more than 0
--   (Azure's reservations and marketplace), Azure's texts -2 and Unassigned. A credit or adjustment of no commitment costs
--   what it is billed (FOCUS EffectiveCost), whatever the export says; what it says is kept.
--   A row with an allocation method was split from an origin row: same resource, charge period, category and SKU. Where the
--   origin row stands in the file with its cost, its parts repeat that money and are in no sum. Where it is zeroed or
--   absent (FOCUS 1.3 allows both), the parts are the money.
--   GPU facts come from the SKU's own fields, never from free text.
-- Grain: source_row
-- Reads: export_row

WITH spelling AS (
    SELECT MAP {
        'usage': 'Usage', 'purchase': 'Purchase', 'tax': 'Tax', 'credit': 'Credit', 'adjustment': 'Adjustment',
        'correction': 'Correction', 'one-time': 'One-Time', 'recurring': 'Recurring', 'usage-based': 'Usage-Based',
        'standard': 'Standard', 'dynamic': 'Dynamic', 'committed': 'Committed', 'other': 'Other',
        'used': 'Used', 'unused': 'Unused', 'spend': 'Spend'
    } AS words
),
kept_origin AS (
    SELECT DISTINCT
        o.resource_id, o.charge_period_start, o.charge_period_end, lower(o.charge_category) AS category, o.sku_id
    FROM export_row AS o
    SEMI JOIN (SELECT * FROM export_row WHERE allocated_method_id IS NOT NULL) AS a
        ON o.resource_id IS NOT DISTINCT FROM a.resource_id AND o.sku_id IS NOT DISTINCT FROM a.sku_id
        AND o.charge_period_start = a.charge_period_start AND o.charge_period_end = a.charge_period_end
        AND lower(o.charge_category) = lower(a.charge_category)
    WHERE o.allocated_method_id IS NULL AND (o.billed_cost <> 0 OR o.effective_cost <> 0)
),
json_text AS (
    -- One function at a time: those below fail on a text that is no JSON, and AND promises no order.
    SELECT
        source_row, CASE WHEN json_valid(sku_price_details) THEN sku_price_details END AS sku,
        CASE WHEN regexp_matches(tags, '"\s|\s"\s*:') AND json_valid(tags) THEN tags END AS tags
    FROM export_row
),
object_text AS (
    -- A key that is given twice says nothing certain: such a text is kept as it is and not looked into.
    SELECT
        source_row,
        CASE WHEN json_type(sku) = 'OBJECT' AND len(json_keys(sku)) = len(list_distinct(json_keys(sku))) THEN sku END AS sku,
        CASE WHEN json_type(tags) = 'OBJECT' AND len(json_keys(tags)) = len(list_distinct(json_keys(tags))) THEN tags END AS tags
    FROM json_text
),
sku_entry AS (
    SELECT
        source_row,
        list_transform(
            map_entries(from_json(sku, '"MAP(VARCHAR, JSON)"')),
            lambda entry: {'key': regexp_replace(lower(entry.key), '^x_|[_ ]', '', 'g'), 'value': entry.value ->> '$'}
        ) AS entries
    FROM object_text
    WHERE sku IS NOT NULL
),
sku AS (
    SELECT source_row, map_from_entries(
        list_filter(entries, lambda entry, i: list_position(list_transform(entries, lambda e: e.key), entry.key) = i)
    ) AS field
    FROM sku_entry
),
tag_entry AS (
    -- Keys that are written right come first: they win over the same key with blanks around it.
    SELECT
        source_row,
        list_filter(entries, lambda entry: trim(entry.key) = entry.key)
        || list_transform(
            list_filter(entries, lambda entry: trim(entry.key) <> entry.key),
            lambda entry: {'key': trim(entry.key), 'value': entry.value}
        ) AS entries
    FROM (
        SELECT source_row, map_entries(from_json(tags, '"MAP(VARCHAR, JSON)"')) AS entries
        FROM object_text
        WHERE tags IS NOT NULL
    )
    WHERE len(list_filter(entries, lambda entry: trim(entry.key) <> entry.key)) > 0
),
tagged AS (
    SELECT source_row, to_json(map_from_entries(
        list_filter(entries, lambda entry, i: list_position(list_transform(entries, lambda e: e.key), entry.key) = i)
    )) AS trimmed_tags
    FROM tag_entry
),
judged AS (
    SELECT
        e.*, s.words, t.trimmed_tags, k.field, o.category IS NOT NULL AS has_kept_origin,
        lower(e.charge_category) IN ('credit', 'adjustment') AND e.commitment_discount_id IS NULL
            AND e.capacity_reservation_id IS NULL AND e.effective_cost <> e.billed_cost AS is_mended
    FROM export_row AS e
    CROSS JOIN spelling AS s
    LEFT JOIN tagged AS t USING (source_row)
    LEFT JOIN sku AS k USING (source_row)
    LEFT JOIN kept_origin AS o
        ON e.allocated_method_id IS NOT NULL
        AND e.resource_id IS NOT DISTINCT FROM o.resource_id AND e.sku_id IS NOT DISTINCT FROM o.sku_id
        AND e.charge_period_start = o.charge_period_start AND e.charge_period_end = o.charge_period_end
        AND lower(e.charge_category) = o.category
)
SELECT
    * EXCLUDE (
        sku_price_details, charge_period_start_text, billing_period_start_text, words, trimmed_tags, field, has_kept_origin,
        is_mended
    ) REPLACE (
        coalesce(words[lower(charge_category)], charge_category) AS charge_category,
        coalesce(words[lower(charge_class)], charge_class) AS charge_class,
        coalesce(words[lower(charge_frequency)], charge_frequency) AS charge_frequency,
        coalesce(words[lower(pricing_category)], pricing_category) AS pricing_category,
        coalesce(words[lower(commitment_discount_status)], commitment_discount_status) AS commitment_discount_status,
        coalesce(words[lower(commitment_discount_category)], commitment_discount_category) AS commitment_discount_category,
        coalesce(words[lower(capacity_reservation_status)], capacity_reservation_status) AS capacity_reservation_status,
        CASE WHEN is_mended THEN billed_cost ELSE effective_cost END AS effective_cost,
        CASE WHEN list_cost <> 0 OR effective_cost <= 0 THEN list_cost END AS list_cost,
        CASE WHEN contracted_cost <> 0 OR effective_cost <= 0 THEN contracted_cost END AS contracted_cost,
        CASE WHEN list_unit_price <> 0 OR effective_cost <= 0 THEN list_unit_price END AS list_unit_price,
        CASE WHEN contracted_unit_price <> 0 OR effective_cost <= 0 THEN contracted_unit_price END AS contracted_unit_price,
        nullif(sku_price_id, '-2') AS sku_price_id,
        nullif(sub_account_name, 'Unassigned') AS sub_account_name,
        coalesce(CAST(trimmed_tags AS VARCHAR), tags) AS tags
    ),
    coalesce(field['instancetype'], field['servicetype'], field['vmsize']) AS x_instance_type,
    coalesce(field['gpumodel'], field['gputype'], field['gpuname'], field['acceleratortype']) AS x_gpu_model,
    CASE
        WHEN regexp_full_match(coalesce(field['gpucount'], field['gpu'], field['acceleratorcount']), '\d{1,6}(\.0+)?')
        THEN CAST(CAST(coalesce(field['gpucount'], field['gpu'], field['acceleratorcount']) AS DECIMAL(18, 6)) AS INTEGER)
    END AS x_gpu_count,
    'export' AS x_origin,
    allocated_method_id IS NOT NULL AND has_kept_origin AS x_is_split_row,
    CASE WHEN is_mended THEN effective_cost END AS x_stated_effective_cost,
    CASE WHEN trimmed_tags IS NOT NULL THEN tags END AS x_stated_tags,
    CASE
        WHEN NOT regexp_matches(charge_period_start_text[11:], '[Z+-]')
            OR NOT regexp_matches(billing_period_start_text[11:], '[Z+-]') THEN true
    END AS x_zone_assumed
FROM judged
