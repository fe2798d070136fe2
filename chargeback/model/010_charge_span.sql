-- Purpose: each charge of the period with the seconds it covers and the account kind that its cost belongs to; and what the
--   period uses up of commitments that their export does not amortise (kind `commitment`), and what owned hardware cost.
--   A charge is spread over the part of its charge period that lies in its billing period; a charge that lies wholly
--   outside (late rows, boundary hours of another time zone) keeps its own span. Rows that repeat money of others are left out.
-- Grain: snapshot_id, source_row
-- Reads: charge, commitment_charge, asset_charge, node

WITH of_period AS (
    SELECT
        snapshot_id, source_row, invoice_issuer AS issuer, invoice_id, billing_currency AS currency, billed_cost, effective_cost,
        charge_kind(charge_category, charge_class, commitment_discount_status, capacity_reservation_status) AS kind,
        coalesce(commitment_discount_id, capacity_reservation_id, 'unassigned') AS commitment,
        capacity_reservation_id AS reservation,
        CASE WHEN lower(consumed_unit) IN ('hrs', 'hours', 'hour', 'hr', 'h') THEN consumed_quantity END AS consumed_hours,
        resource_id, service_name,
        seconds_of(charge_period_start) AS charge_from_s,
        greatest(seconds_of(charge_period_end), seconds_of(charge_period_start) + 1) AS charge_to_s,
        greatest(seconds_of(charge_period_start), seconds_of(billing_period_start)) AS inside_from_s,
        least(seconds_of(charge_period_end), seconds_of(billing_period_end)) AS inside_to_s
    FROM charge
    WHERE billing_period_start >= $period_start AND billing_period_start < $period_end
      AND NOT coalesce(x_is_split_row, false)
),
amortised AS (
    SELECT
        snapshot_id, source_row, invoice_issuer AS issuer, billing_currency AS currency, billed_cost, effective_cost,
        CASE charge_category WHEN 'Usage' THEN 'commitment' ELSE 'adjustment' END AS kind, commitment_discount_id AS commitment,
        seconds_of(charge_period_start) AS inside_from_s, seconds_of(charge_period_end) AS inside_to_s
    FROM commitment_charge
),
owned AS (
    SELECT
        snapshot_id, source_row, invoice_issuer AS issuer, invoice_id, billing_currency AS currency, billed_cost, effective_cost,
        'usage' AS kind, 'unassigned' AS commitment, resource_id, node_account(cluster, node) AS owned_node,
        seconds_of(charge_period_start) AS inside_from_s, seconds_of(charge_period_end) AS inside_to_s
    FROM asset_charge
)
SELECT
    snapshot_id, source_row, issuer, invoice_id, currency, billed_cost, effective_cost, commitment, reservation, consumed_hours,
    resource_id, service_name, kind,
    -- The inventory's name for the resource used: the whole id, or the last part of a longer one (an instance id in an ARN).
    -- Owned hardware has no such id: the node's account stands for it.
    CASE
        WHEN snapshot_id = 'asset' THEN owned_node
        WHEN kind <> 'usage' THEN NULL
        WHEN resource_id IN (SELECT resource_id FROM node) THEN resource_id
        WHEN split_part(resource_id, '/', -1) IN (SELECT resource_id FROM node) THEN split_part(resource_id, '/', -1)
    END AS node_resource_id,
    CASE WHEN inside_from_s < inside_to_s THEN inside_from_s ELSE charge_from_s END AS span_from_s,
    CASE WHEN inside_from_s < inside_to_s THEN inside_to_s ELSE charge_to_s END AS span_to_s
FROM (FROM of_period UNION ALL BY NAME FROM amortised UNION ALL BY NAME FROM owned)
