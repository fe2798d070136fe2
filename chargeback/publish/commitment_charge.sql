-- Purpose: what the period uses up of commitments that no export amortises.
-- Grain: none
-- Reads: commitment_charge

SELECT CAST($period AS VARCHAR) AS period, * FROM commitment_charge
