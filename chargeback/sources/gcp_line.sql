-- Purpose: rows with their labels, their time and month, and what they have to do with a commitment.
--   Is it a fee: its SKU is named a commitment's, it says which SKU it was spent on, or it belongs to a subscription and is
--   no usage that one covers. `coverage_key` is what a fee and the usage that it covers have in common: for a
--   commitment to spend the SKU used, for one of resources its name without term and the region.
-- Grain: source_row
-- Reads: gcp_row, gcp_labels

WITH labelled AS (
    SELECT
        r.* EXCLUDE (labels, tags, project_labels, system_labels),
        l.label_json, l.originating_sku, l.machine, nullif(l.reservation, '') AS reservation, l.is_unused_reservation,
        TRY(r.cost + r.discount) AS net,
        CASE WHEN regexp_full_match(r.usage_start_text, '\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*')
            THEN TRY_CAST(r.usage_start_text AS TIMESTAMPTZ) END AS used_from,
        CASE WHEN regexp_full_match(r.usage_end_text, '\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*')
            THEN TRY_CAST(r.usage_end_text AS TIMESTAMPTZ) END AS used_to,
        NOT regexp_matches(r.usage_start_text, '(Z|UTC|[+-]\d\d(:?\d\d)?)$') AS has_no_zone,
        CASE WHEN regexp_full_match(r.invoice_month, '\d{4}(0[1-9]|1[0-2])')
            THEN TRY_CAST(r.invoice_month[:4] || '-' || r.invoice_month[5:] || '-01T00:00:00Z' AS TIMESTAMPTZ)
        END AS month_from,
        -- "Commitment v1: Nvidia L4 GPU in Iowa for 1 Year" covers "Nvidia L4 GPU running in Iowa", and
        -- "Commitment v1: A2 Cpu in Americas for 1 Year" covers "A2 Instance Core running in Americas".
        nullif(regexp_extract(r.sku, '^Commitment v\d+: (.+) for \d+ [Yy]ears?$', 1), '') AS committed_name,
        replace(replace(r.sku, ' Instance Core', ' Cpu'), ' Instance Ram', ' Ram') AS used_name
    FROM gcp_row AS r
    JOIN gcp_labels AS l
        ON r.labels IS NOT DISTINCT FROM l.labels AND r.tags IS NOT DISTINCT FROM l.tags
       AND r.project_labels IS NOT DISTINCT FROM l.project_labels AND r.system_labels IS NOT DISTINCT FROM l.system_labels
),
judged AS (
    SELECT
        *, date_trunc('hour', used_from) AS hour,
        cost_type = 'regular' AND (
            starts_with(lower(coalesce(sku, '')), 'commitment') OR originating_sku IS NOT NULL OR has_offset
            OR (subscription IS NOT NULL AND price_model = 'Default' AND spend_credit = 0 AND resource_credit = 0)
        ) AS is_fee
    FROM labelled
)
SELECT
    * EXCLUDE (committed_name, used_name),
    CASE WHEN committed_name IS NOT NULL THEN 'resource' ELSE 'spend' END AS fee_plan,
    concat_ws('|', region, replace(coalesce(committed_name, used_name), ' running in ', ' in '), priced_unit) AS resource_key,
    CASE WHEN is_fee THEN originating_sku ELSE sku_id END AS spend_key
FROM judged
