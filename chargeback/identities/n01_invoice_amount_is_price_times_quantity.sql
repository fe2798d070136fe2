-- Identity: N1
-- Severity: warn
-- Purpose: the amount of a line of an invoice is its quantity times its unit price, to the cent (or the whole unit of currencies
--   without one). The amount counts.
-- Source: columns of neo-cloud invoices, docs/bill.md
-- Reads: staged_charge

SELECT
    source_row, 'amount' AS column_name, CAST(amount AS VARCHAR) AS value,
    'is not unit_price ' || contracted_unit_price || ' times qty ' || pricing_quantity AS message
FROM (
    SELECT
        *, CASE WHEN billed_cost = 0 THEN effective_cost ELSE billed_cost END AS amount,
        CASE
            WHEN billing_currency IN (
                'BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'VND', 'VUV', 'XAF', 'XOF', 'XPF'
            )
            THEN 1 ELSE 0.01
        END AS cent
    FROM staged_charge
    WHERE x_origin = 'neocloud' AND charge_category <> 'Tax'
      AND contracted_unit_price IS NOT NULL AND pricing_quantity IS NOT NULL
)
WHERE coalesce(abs(amount - contracted_cost) > cent, true)
