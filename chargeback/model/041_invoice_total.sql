-- Purpose: each invoice beside the charges that are on it, with what is left between them and how it is judged.
--   Charges are on the invoice whose id they carry. Those without an id, or with that of no invoice of the period, are on
--   the issuer's only invoice if it has one; else they and the invoices that no charge names are compared as one sum
--   (invoice_id NULL). Voided invoices do not count.
--   A tax that the invoice states is absent from the export where the issuer has no tax line at all.
--   What owned hardware costs one bills to oneself: it is what it asks.
--   The tolerance is that of FOCUS 1.4, InvoiceDetail: max(100, 0.5 * sqrt(lines)) minor units, in thousandths of a unit.
-- Grain: issuer, currency, invoice_id
-- Reads: charge_span, invoice, minor_unit

WITH charged AS (
    SELECT
        issuer, currency, invoice_id, count(*) AS charge_count, sum(billed_cost) AS billed_total,
        count(*) FILTER (WHERE kind = 'tax') AS tax_line_count
    FROM charge_span WHERE snapshot_id NOT IN ('commitment', 'asset')
    GROUP BY ALL
),
stated AS (
    SELECT
        issuer, currency, invoice_id, sum(total_amount) AS total_amount, sum(tax_amount) AS tax_amount,
        bool_or(lower(coalesce(status, '')) = 'open') AS is_open
    FROM invoice
    WHERE period = $period AND lower(coalesce(status, '')) <> 'voided'
    GROUP BY ALL
),
issuer_of AS (
    SELECT
        issuer, currency, count(total_amount) > 0 AS has_invoice,
        CASE WHEN count(total_amount) = 1 THEN any_value(invoice_id) FILTER (WHERE total_amount IS NOT NULL) END AS only_id,
        coalesce(sum(tax_line_count), 0) > 0 AS has_tax_line
    FROM (FROM charged UNION ALL BY NAME FROM stated)
    GROUP BY ALL
),
placed AS (
    SELECT
        issuer, currency, CASE WHEN s.invoice_id IS NOT NULL THEN c.invoice_id ELSE i.only_id END AS group_id,
        c.charge_count, c.billed_total
    FROM charged AS c
    JOIN issuer_of AS i USING (issuer, currency)
    LEFT JOIN stated AS s USING (issuer, currency, invoice_id)
),
summed AS (
    SELECT issuer, currency, group_id, sum(charge_count) AS charge_count, sum(billed_total) AS billed_total
    FROM placed GROUP BY ALL
),
asked AS (
    -- Invoices that no charge names are compared with the charges that name none, if there are any.
    SELECT
        s.issuer, s.currency,
        CASE
            WHEN (s.issuer, s.currency, s.invoice_id) IN (SELECT (issuer, currency, group_id) FROM summed) THEN s.invoice_id
            WHEN (s.issuer, s.currency) IN (SELECT (issuer, currency) FROM summed WHERE group_id IS NULL) THEN NULL
            ELSE s.invoice_id
        END AS group_id,
        s.total_amount, s.tax_amount, s.is_open
    FROM stated AS s
),
invoiced AS (
    SELECT
        issuer, currency, group_id, count(*) AS invoice_count, sum(total_amount) AS total_amount, sum(tax_amount) AS tax_amount,
        bool_or(is_open) AS is_open
    FROM asked GROUP BY ALL
),
joined AS (
    SELECT
        i.issuer, i.currency, coalesce(c.group_id, v.group_id) AS invoice_id, coalesce(v.invoice_count, 0) AS invoice_count,
        coalesce(c.charge_count, 0) AS charge_count, coalesce(c.billed_total, 0) AS billed_total,
        -- What an issuer bills on no invoice is compared with nothing, unless it has invoices: then it is more than they ask.
        CASE WHEN v.invoice_count > 0 THEN v.total_amount WHEN i.has_invoice THEN 0 END AS invoice_total,
        v.tax_amount AS tax_total, coalesce(v.is_open, false) AS is_open,
        CASE WHEN i.has_tax_line THEN 0 ELSE coalesce(v.tax_amount, 0) END AS absent_tax
    FROM summed AS c
    FULL JOIN invoiced AS v ON v.issuer = c.issuer AND v.currency = c.currency AND v.group_id IS NOT DISTINCT FROM c.group_id
    JOIN issuer_of AS i ON i.issuer = coalesce(c.issuer, v.issuer) AND i.currency = coalesce(c.currency, v.currency)
),
measured AS (
    SELECT
        j.*, j.invoice_total - j.billed_total - j.absent_tax AS residual,
        CAST(u.minor_unit * greatest(100000, CAST(floor(500 * sqrt(j.charge_count)) AS BIGINT)) * 0.001 AS DECIMAL(38, 12)) AS tolerance
    FROM joined AS j
    JOIN minor_unit AS u USING (currency)
)
SELECT
    issuer, currency, invoice_id, CAST(invoice_count AS BIGINT) AS invoice_count, CAST(charge_count AS BIGINT) AS charge_count,
    CAST(billed_total AS DECIMAL(38, 12)) AS billed_total, CAST(tax_total AS DECIMAL(38, 12)) AS tax_total,
    CAST(absent_tax AS DECIMAL(38, 12)) AS absent_tax, CAST(invoice_total AS DECIMAL(38, 12)) AS invoice_total,
    CAST(residual AS DECIMAL(38, 12)) AS residual, tolerance,
    CASE
        WHEN invoice_total IS NULL THEN 'no_invoice'
        WHEN residual = 0 THEN 'matched'
        WHEN abs(residual) <= tolerance AND charge_count > 0 THEN 'rounded'
        WHEN is_open THEN 'open'
        WHEN charge_count = 0 THEN 'no_charges'
        WHEN invoice_count = 0 THEN 'beyond_invoices'
        ELSE 'differs'
    END AS status
FROM measured
UNION ALL
SELECT
    issuer, currency, any_value(invoice_id), 0, count(*), CAST(sum(billed_cost) AS DECIMAL(38, 12)), NULL, 0,
    CAST(sum(billed_cost) AS DECIMAL(38, 12)), 0, 0, 'self_issued'
FROM charge_span WHERE snapshot_id = 'asset'
GROUP BY issuer, currency
