-- Purpose: each charge of the period with the seconds it covers and the account kind that its cost belongs to.
--   A charge is spread over the part of its charge period that lies in its billing period; a charge that lies wholly
--   outside (late rows, boundary hours of another time zone) keeps its own span.
-- Grain: snapshot_id, source_row
-- Reads: charge, node

WITH of_period AS (
    SELECT
        snapshot_id, source_row, invoice_issuer AS issuer, billing_currency AS currency, billed_cost, effective_cost,
        lower(charge_category) AS category, lower(coalesce(charge_class, '')) AS class,
        lower(coalesce(commitment_discount_status, '')) AS commitment_status,
        lower(coalesce(capacity_reservation_status, '')) AS reservation_status,
        coalesce(commitment_discount_id, capacity_reservation_id, 'unassigned') AS commitment,
        resource_id, service_name,
        seconds_of(charge_period_start) AS charge_from_s,
        greatest(seconds_of(charge_period_end), seconds_of(charge_period_start) + 1) AS charge_to_s,
        greatest(seconds_of(charge_period_start), seconds_of(billing_period_start)) AS inside_from_s,
        least(seconds_of(charge_period_end), seconds_of(billing_period_end)) AS inside_to_s
    FROM charge
    WHERE billing_period_start >= $period_start AND billing_period_start < $period_end
),
judged AS (
    SELECT
        *,
        CASE
            WHEN class = 'correction' THEN 'adjustment'
            WHEN category = 'tax' THEN 'tax'
            WHEN category = 'credit' THEN 'credit'
            WHEN category = 'adjustment' THEN 'adjustment'
            WHEN commitment_status = 'unused' OR reservation_status = 'unused' THEN 'unused_commitment'
            WHEN category = 'usage' THEN 'usage'
            ELSE 'overhead'
        END AS kind
    FROM of_period
)
SELECT
    snapshot_id, source_row, issuer, currency, billed_cost, effective_cost, commitment, resource_id, service_name, kind,
    -- The inventory's name for the resource used: the whole id, or the last part of a longer one (an instance id in an ARN).
    CASE
        WHEN kind <> 'usage' THEN NULL
        WHEN resource_id IN (SELECT resource_id FROM node) THEN resource_id
        WHEN split_part(resource_id, '/', -1) IN (SELECT resource_id FROM node) THEN split_part(resource_id, '/', -1)
    END AS node_resource_id,
    CASE WHEN inside_from_s < inside_to_s THEN inside_from_s ELSE charge_from_s END AS span_from_s,
    CASE WHEN inside_from_s < inside_to_s THEN inside_to_s ELSE charge_to_s END AS span_to_s
FROM judged
