-- Purpose: what owned hardware cost.
-- Grain: none
-- Reads: asset_charge

SELECT CAST($period AS VARCHAR) AS period, * EXCLUDE (provider) FROM asset_charge
