-- Identity: I14
-- Severity: warn
-- Purpose: ids of AWS accounts have 12 digits. Shorter ones have lost a leading zero on their way, mostly in a spreadsheet; they
--   are kept as they are and match only what is written likewise.
-- Source: AWS account identifiers
-- Reads: staged_charge

WITH account AS (
    SELECT
        source_row, sub_account_id, billing_account_id,
        regexp_full_match(sub_account_id, '\d+') AND length(sub_account_id) <> 12 AS is_sub_wrong,
        regexp_full_match(billing_account_id, '\d+') AND length(billing_account_id) <> 12 AS is_billing_wrong
    FROM staged_charge
    -- The service is called by several names, and resold by issuers of other names.
    WHERE lower(provider) IN ('aws', 'amazon', 'amazon web services', 'amazon web services, inc.')
)
SELECT
    source_row, CASE WHEN is_sub_wrong THEN 'SubAccountId' ELSE 'BillingAccountId' END AS column_name,
    CASE WHEN is_sub_wrong THEN sub_account_id ELSE billing_account_id END AS value,
    'is not the 12 digits of an AWS account: has it lost a leading zero?' AS message
FROM account
WHERE is_sub_wrong OR is_billing_wrong
