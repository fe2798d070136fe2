-- Purpose: a FOCUS 1.2 bill for the nodes: one row a node and hour at 24.48 USD, the list price of an 8 x V100 instance.
--   The trace comes from a private cluster that had no such bill.
-- Grain: none
-- Reads: source

WITH size AS (
    SELECT CAST(sum(gpus) // 8 AS BIGINT) AS nodes FROM (SELECT max(gpus_capacity) AS gpus FROM source GROUP BY vc)
),
line AS (
    SELECT n, TIMESTAMP '2020-05-01 00:00:00' + to_hours(CAST(h AS INTEGER)) AS hour_start
    FROM (SELECT unnest(range(1, nodes + 1)) AS n FROM size), range(744) AS g(h)
)
SELECT
    'Demo Cloud' AS ProviderName, 'Demo Cloud' AS PublisherName, 'Demo Cloud' AS InvoiceIssuerName,
    'DEMO-2020-05' AS InvoiceId, '000000000042' AS BillingAccountId,
    '2020-05-01T00:00:00Z' AS BillingPeriodStart, '2020-06-01T00:00:00Z' AS BillingPeriodEnd,
    strftime(hour_start, '%Y-%m-%dT%H:%M:%SZ') AS ChargePeriodStart,
    strftime(hour_start + INTERVAL 1 HOUR, '%Y-%m-%dT%H:%M:%SZ') AS ChargePeriodEnd,
    'Usage' AS ChargeCategory, 'Usage-Based' AS ChargeFrequency, 'On-demand 8 x V100 instance, per hour' AS ChargeDescription,
    '24.48' AS BilledCost, '24.48' AS EffectiveCost, '24.48' AS ListCost, '24.48' AS ContractedCost,
    '24.48' AS ListUnitPrice, '24.48' AS ContractedUnitPrice, 'Standard' AS PricingCategory,
    1 AS PricingQuantity, 'Hours' AS PricingUnit, 1 AS ConsumedQuantity, 'Hours' AS ConsumedUnit, 'USD' AS BillingCurrency,
    printf('i-earth-%03d', n) AS ResourceId, printf('earth-%03d', n) AS ResourceName, 'Instance' AS ResourceType,
    'demo-1' AS RegionId, 'Compute' AS ServiceCategory, 'GPU instances' AS ServiceName, '8xv100' AS SkuId,
    '8xv100-on-demand' AS SkuPriceId
FROM line
ORDER BY hour_start, n
