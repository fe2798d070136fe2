-- Purpose: each issuer's charges beside its invoices, per currency: the two sides that the bridge compares.
--   An invoice that is still open and does not match yet leaves its issuer without a total to compare with.
--   A tax that no charge line carries is shared to teams (`invoice_tax`), or stays absent from the export, as configured.
-- Grain: issuer, currency
-- Reads: charge_span, invoice_total, setting

WITH effective AS (
    SELECT issuer, currency, sum(effective_cost) AS effective_total FROM charge_span GROUP BY ALL
),
summed AS (
    SELECT
        issuer, currency, sum(charge_count) AS charge_count, sum(billed_total) AS billed_total,
        CASE WHEN bool_and(invoice_total IS NOT NULL) THEN sum(invoice_total) END AS invoice_total,
        bool_or(status = 'open') AS is_open, sum(absent_tax) AS absent_tax
    FROM invoice_total GROUP BY ALL
)
SELECT
    issuer, currency, CAST(coalesce(s.charge_count, 0) AS BIGINT) AS charge_count, coalesce(s.billed_total, 0) AS billed_total,
    coalesce(e.effective_total, 0) AS effective_total,
    -- An issuer whose commitments are used up in a month in which it billed nothing has nothing to ask.
    CASE WHEN s.issuer IS NULL THEN 0 WHEN NOT s.is_open THEN s.invoice_total END AS invoice_total,
    CASE WHEN s.is_open OR t.invoice_tax <> 'share' THEN 0 ELSE coalesce(s.absent_tax, 0) END AS invoice_tax,
    CASE WHEN s.is_open OR t.invoice_tax = 'share' THEN 0 ELSE coalesce(s.absent_tax, 0) END AS absent_from_export
FROM summed AS s
FULL JOIN effective AS e USING (issuer, currency)
CROSS JOIN setting AS t
