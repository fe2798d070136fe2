-- Identity: A4
-- Severity: warn
-- Purpose: lines of an AWS Savings Plan or reservation name it. Where the export leaves the column out, all of one kind are one
--   commitment, with one prepaid account.
-- Source: AWS Data Exports table dictionary, savings_plan_savings_plan_a_r_n, reservation_reservation_a_r_n
-- Reads: staged_charge

SELECT
    min(source_row) AS source_row, 'CommitmentDiscountId' AS column_name, CAST(NULL AS VARCHAR) AS value,
    'is empty in ' || count(*) || ' lines of type ' || x_line_type || ': they count for ' || commitment_discount_id AS message
FROM staged_charge
WHERE provider = 'AWS'
  AND commitment_discount_id IN ('a Savings Plan without a name', 'a reservation without a name')
GROUP BY commitment_discount_id, x_line_type
