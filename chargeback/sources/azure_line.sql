-- Purpose: rows of Azure's cost details with their days, their dataset, and the commitment that they belong to: the order of a
--   reservation or savings plan, since that is what is paid, whatever reservations it was cut into. Its purchase names no
--   reservation at all. Azure's ids mean the same in any letter case; here they are in lower case.
--   `pair_key` is all that a row of actual cost and its row of amortized cost have in common; the cost but for artefacts of
--   floats.
-- Grain: source_row
-- Reads: export_row

WITH parsed AS (
    SELECT
        *,
        -- Days are MM/DD/YYYY, or begin like an RFC 3339 time; what cannot be read is refused as a charge without its time.
        [
            CASE
                WHEN regexp_full_match(day.text, '\d{1,2}/\d{1,2}/\d{4}( .*)?')
                THEN timezone('UTC', try_strptime(split_part(day.text, ' ', 1), '%m/%d/%Y'))
                WHEN regexp_matches(day.text, '^\d{4}-\d{2}-\d{2}($|[T ])')
                THEN timezone('UTC', CAST(TRY_CAST(day.text[:10] AS DATE) AS TIMESTAMP))
            END
            FOR day IN [{'text': charge_date}, {'text': period_start_date}, {'text': period_end_date}]
        ] AS days,
        CASE WHEN json_valid(additional_info) THEN additional_info END AS info,
        coalesce(contains(lower(part), 'amorti'), false) AS is_amortized,
        lower(charge_type) AS type, lower(replace(pricing_model, ' ', '')) AS model,
        {
            'date': charge_date, 'subscription': subscription_id, 'section': invoice_section_id, 'resource': lower(resource_id),
            'meter': meter_id, 'product': product, 'part': part_number, 'order': product_order_id, 'type': charge_type,
            'model': pricing_model, 'frequency': frequency, 'quantity': quantity, 'unit': unit_of_measure, 'price': unit_price,
            'publisher': publisher_type, 'info': additional_info, 'tags': tags, 'currency': billing_currency,
            'cost': round(cost, 9)
        } AS pair_key
    FROM export_row
),
judged AS (
    SELECT
        *,
        coalesce(model IN ('reservation', 'savingsplan'), false) OR type IN ('unusedreservation', 'unusedsavingsplan')
            OR (type IN ('purchase', 'refund') AND coalesce(reservation_id, benefit_id) IS NOT NULL) AS is_committed,
        coalesce(model = 'savingsplan', false) OR type = 'unusedsavingsplan'
            OR coalesce(contains(lower(benefit_id), '/savingsplanorders/'), false) AS is_plan
    FROM parsed
)
SELECT
    * EXCLUDE (days), days[1] AS charge_day, days[2] AS period_from, days[3] + INTERVAL 1 DAY AS period_to,
    CASE WHEN is_committed THEN coalesce(
        nullif(regexp_extract(lower(benefit_id), '^.*/(reservationorders|savingsplanorders)/[^/]+'), ''),
        CASE WHEN is_plan THEN '/providers/microsoft.billingbenefits/savingsplanorders/'
            ELSE '/providers/microsoft.capacity/reservationorders/' END || lower(product_order_id),
        lower(coalesce(benefit_id, reservation_id))
    ) END AS commitment
FROM judged
