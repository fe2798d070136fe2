-- Purpose: each issuer's charges beside its invoice, per currency: the two sides that rounding and the bridge compare.
--   A tax that the invoice states and no charge line carries is absent from the export (as in some providers' exports).
-- Grain: issuer, currency
-- Reads: charge_span, invoice

WITH charged AS (
    SELECT
        issuer, currency, count(*) AS charge_count, sum(billed_cost) AS billed_total, sum(effective_cost) AS effective_total,
        count(*) FILTER (WHERE kind = 'tax') AS tax_line_count
    FROM charge_span GROUP BY ALL
),
invoiced AS (
    SELECT issuer, currency, sum(total_amount) AS invoice_total, sum(tax_amount) AS tax_total
    FROM invoice
    WHERE period = $period AND lower(coalesce(status, '')) <> 'voided'
    GROUP BY ALL
)
SELECT
    issuer, currency, coalesce(c.charge_count, 0) AS charge_count, coalesce(c.billed_total, 0) AS billed_total,
    coalesce(c.effective_total, 0) AS effective_total, i.invoice_total,
    CASE WHEN coalesce(c.tax_line_count, 0) = 0 THEN coalesce(i.tax_total, 0) ELSE 0 END AS absent_from_export
FROM charged AS c
FULL JOIN invoiced AS i USING (issuer, currency)
