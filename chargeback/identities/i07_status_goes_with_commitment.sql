-- Identity: I7
-- Severity: error
-- Purpose: usage has a commitment's (or reservation's) status if and only if it names the commitment; an unused part names it as
--   its resource too, whatever the case of the letters, and consumes nothing. FOCUS 1.0 asks for a consumed quantity there;
--   versions with a CommitmentDiscountQuantity do not. Of a reservation, used rows may lack the status.
-- Source: FOCUS 1.2 CommitmentDiscountStatus, CapacityReservationStatus, ConsumedQuantity, commitment discounts appendix
-- Reads: staged_charge

WITH usage_row AS (
    SELECT
        *, lower(coalesce(commitment_discount_status, '')) = 'unused' AS is_unused,
        lower(coalesce(commitment_discount_id, capacity_reservation_id)) AS commitment
    FROM staged_charge
    WHERE lower(charge_category) = 'usage' AND NOT coalesce(x_is_split_row, false)
),
first_wrong AS (
    SELECT
        source_row,
        CASE
            WHEN (commitment_discount_id IS NULL) <> (commitment_discount_status IS NULL)
            THEN {
                'name': 'CommitmentDiscountStatus', 'text': commitment_discount_status,
                'said': CASE WHEN commitment_discount_id IS NULL THEN 'names no commitment' ELSE 'must not be empty: '
                    || 'CommitmentDiscountId is given' END
            }
            WHEN commitment_discount_status IS NOT NULL AND lower(commitment_discount_status) NOT IN ('used', 'unused')
            THEN {'name': 'CommitmentDiscountStatus', 'text': commitment_discount_status, 'said': 'is not Used or Unused'}
            WHEN capacity_reservation_status IS NOT NULL AND capacity_reservation_id IS NULL
            THEN {
                'name': 'CapacityReservationStatus', 'text': capacity_reservation_status, 'said': 'names no reservation'
            }
            WHEN capacity_reservation_status IS NOT NULL AND lower(capacity_reservation_status) NOT IN ('used', 'unused')
            THEN {'name': 'CapacityReservationStatus', 'text': capacity_reservation_status, 'said': 'is not Used or Unused'}
            WHEN is_unused AND lower(resource_id) NOT IN (commitment, coalesce(lower(capacity_reservation_id), commitment))
            THEN {'name': 'ResourceId', 'text': resource_id, 'said': 'is not the commitment whose unused part this is'}
            WHEN is_unused AND commitment_discount_quantity IS NOT NULL AND consumed_quantity IS NOT NULL
            THEN {
                'name': 'ConsumedQuantity', 'text': CAST(consumed_quantity AS VARCHAR),
                'said': 'is consumed by the unused part of a commitment'
            }
        END AS wrong
    FROM usage_row
)
SELECT source_row, wrong.name AS column_name, wrong.text AS value, wrong.said AS message
FROM first_wrong
WHERE wrong IS NOT NULL
