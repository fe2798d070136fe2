-- Purpose: the invoice that goes with the demo's bill: nodes x hours x price, stated independently of the charge lines.
-- Grain: none
-- Reads: source

SELECT
    'Demo Cloud' AS issuer, 'DEMO-2020-05' AS invoice_id, '2020-05' AS period, 'USD' AS currency,
    CAST(sum(gpus) // 8 * 744 * 24.48 AS DECIMAL(18, 2)) AS total, NULL AS tax, 'issued' AS status
FROM (SELECT max(gpus_capacity) AS gpus FROM source GROUP BY vc)
