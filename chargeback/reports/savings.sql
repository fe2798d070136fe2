-- Purpose: what a period cost beside its list prices, for each issuer and currency: saved by negotiated prices and by commitments.
--   A commitment's purchase has a list cost too, and so has the usage that it covers: only the usage counts here. Charges
--   whose list or contracted cost the export does not know are counted apart.
-- Grain: issuer, currency
-- Scope: finance
-- Reads: charge, posting

WITH counted AS (
    SELECT
        invoice_issuer AS issuer, billing_currency AS currency, list_cost, contracted_cost, effective_cost,
        list_cost IS NOT NULL AND contracted_cost IS NOT NULL AS is_known
    FROM lake.charge
    WHERE snapshot_id IN (SELECT charge_snapshot_id FROM lake.posting WHERE period = $period)
      AND strftime(billing_period_start, '%Y-%m') = $period
      AND NOT coalesce(x_is_split_row, false)
      AND NOT (
          lower(charge_category) = 'purchase'
          AND (commitment_discount_id IS NOT NULL OR capacity_reservation_id IS NOT NULL)
      )
)
SELECT
    issuer, currency,
    sum(list_cost) FILTER (WHERE is_known) AS list_cost,
    sum(contracted_cost) FILTER (WHERE is_known) AS contracted_cost,
    sum(effective_cost) FILTER (WHERE is_known) AS effective_cost,
    sum(list_cost - effective_cost) FILTER (WHERE is_known) AS saved,
    sum(list_cost - contracted_cost) FILTER (WHERE is_known) AS negotiated,
    sum(contracted_cost - effective_cost) FILTER (WHERE is_known) AS committed,
    count(*) FILTER (WHERE NOT is_known) AS unpriced_charge_count,
    coalesce(sum(effective_cost) FILTER (WHERE NOT is_known), 0) AS unpriced_effective_cost
FROM counted
GROUP BY ALL
ORDER BY issuer, currency
