-- Purpose: Azure's FOCUS exports as charges: what step focus makes of them, and what Azure leaves to its own columns. A
--   commitment is the order that was paid, in lower case, as in cost details: purchases and usage write it in different
--   letter cases, and the purchase names no reservation. Reserved capacity is named by the SKU's details; unused, it is the
--   resource itself. An instance of a scale set has the resource id that it has in Azure. There is no tax.
-- Source: Microsoft's FOCUS conformance report (CapacityReservationId, CommitmentDiscountId, CommitmentDiscountQuantity)
-- Grain: source_row
-- Reads: focus, export_row

WITH detailed AS (
    SELECT
        f.*, lower(f.charge_category) = 'usage' AS is_usage,
        coalesce(lower(f.commitment_discount_status) = 'unused', false) AS is_unused,
        coalesce(
            nullif(regexp_extract(lower(f.commitment_discount_id), '^.*/(reservationorders|savingsplanorders)/[^/]+'), ''),
            lower(f.commitment_discount_id)
        ) AS commitment,
        CASE WHEN json_valid(e.sku_price_details) THEN e.sku_price_details END AS details,
        contains(lower(f.resource_id), '/capacityreservations/') AS is_unused_capacity
    FROM focus AS f
    JOIN export_row AS e USING (source_row)
),
named AS (
    SELECT
        *,
        CASE WHEN is_usage THEN lower(coalesce(
            capacity_reservation_id, details ->> '$.VMCapacityReservationId', details ->> '$.x_VMCapacityReservationId'
        )) END AS reservation,
        TRY_CAST(coalesce(details ->> '$.RINormalizationRatio', details ->> '$.x_RINormalizationRatio') AS DECIMAL(18, 6))
            AS normalization,
        coalesce(details ->> '$.VMName', details ->> '$.x_VMName') AS machine
    FROM detailed
),
placed AS (
    SELECT
        *,
        CASE
            WHEN is_usage AND is_unused THEN commitment
            WHEN reservation IS NOT NULL AND is_unused_capacity THEN reservation
            WHEN regexp_matches(lower(resource_id), '/virtualmachinescalesets/[^/]+$') AND regexp_matches(machine, '_\d+$')
            THEN lower(resource_id) || '/virtualmachines/' || regexp_extract(machine, '_(\d+)$', 1)
            ELSE lower(resource_id)
        END AS resource
    FROM named
)
SELECT
    * EXCLUDE (
        is_usage, is_unused, commitment, details, is_unused_capacity, reservation, normalization, machine, resource
    ) REPLACE (
        commitment AS commitment_discount_id, resource AS resource_id, reservation AS capacity_reservation_id,
        CASE
            WHEN reservation IS NULL THEN NULL
            ELSE coalesce(capacity_reservation_status, CASE WHEN is_unused_capacity THEN 'Unused' ELSE 'Used' END)
        END AS capacity_reservation_status,
        CASE
            WHEN commitment_discount_quantity IS NULL AND commitment IS NOT NULL AND is_usage AND NOT is_unused
            THEN CAST(TRY(consumed_quantity * normalization) AS DECIMAL(38, 12))
            ELSE commitment_discount_quantity
        END AS commitment_discount_quantity
    ),
    charge_category AS x_line_type,
    CASE WHEN resource <> lower(resource_id) THEN resource_id END AS x_stated_resource_id,
    CASE WHEN commitment <> commitment_discount_id THEN commitment_discount_id END AS x_stated_commitment_id
FROM placed
