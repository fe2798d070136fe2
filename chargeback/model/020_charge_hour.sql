-- Purpose: each charge cut into hours in proportion to time, exact to the pico-unit.
--   The part of an hour is F(end) - F(start) of the cumulative F(t) = cost * t // span, so the parts add up to the charge.
-- Grain: snapshot_id, source_row, hour_number
-- Reads: charge_span

WITH cut AS (
    SELECT *, unnest(range(span_from_s // 3600, (span_to_s - 1) // 3600 + 1)) AS hour_number
    FROM charge_span
    WHERE effective_cost <> 0
),
offsets AS (
    SELECT
        *, to_pico(effective_cost) AS cost_pico, span_to_s - span_from_s AS span_s,
        greatest(hour_number * 3600, span_from_s) - span_from_s AS offset_from_s,
        least(hour_number * 3600 + 3600, span_to_s) - span_from_s AS offset_to_s
    FROM cut
)
SELECT
    snapshot_id, source_row, hour_number, issuer, currency, kind, commitment, node_resource_id,
    billed_cost, effective_cost,
    cost_pico * offset_to_s // span_s - cost_pico * offset_from_s // span_s AS amount_pico
FROM offsets
