-- Identity: I13
-- Severity: warn
-- Purpose: times carry a zone. Those that do not are read as UTC, which FOCUS prescribes.
-- Source: FOCUS 1.2 date/time format
-- Reads: staged_charge

SELECT
    source_row, 'ChargePeriodStart' AS column_name, strftime(charge_period_start, '%Y-%m-%d %H:%M:%S') AS value,
    'carries no time zone here or in BillingPeriodStart: read as UTC' AS message
FROM staged_charge
WHERE x_zone_assumed
