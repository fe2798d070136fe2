-- Purpose: the fleet's month per currency: invoice and statement, and beside them capacity, held and waiting GPU time.
-- Grain: none
-- Scope: finance
-- Reads: bridge, statement_line, queue_hour, node_hour

WITH money AS (
    SELECT
        currency, sum(amount) AS statement_total,
        coalesce(sum(amount) FILTER (WHERE category IN ('used', 'held_idle', 'held')), 0) AS held_amount
    FROM lake.statement_line WHERE period = $period GROUP BY currency
),
invoiced AS (
    SELECT currency, sum(invoice_total) AS invoice_total FROM lake.bridge WHERE period = $period GROUP BY currency
),
use AS (
    SELECT
        CAST(coalesce(sum(capacity_gpu_microseconds), 0) AS BIGINT) AS capacity_gpu_microseconds,
        CAST(coalesce(sum(held_gpu_microseconds), 0) AS BIGINT) AS held_gpu_microseconds,
        CAST(coalesce(sum(pending_gpu_microseconds), 0) AS BIGINT) AS pending_gpu_microseconds,
        CAST(coalesce(sum(pending_while_idle_gpu_microseconds), 0) AS BIGINT) AS pending_while_idle_gpu_microseconds
    FROM lake.queue_hour WHERE period = $period
),
size AS (
    SELECT count(DISTINCT (cluster, node)) AS nodes FROM lake.node_hour WHERE period = $period
)
SELECT m.currency, i.invoice_total, m.statement_total, m.held_amount, u.*, s.nodes
FROM money AS m
LEFT JOIN invoiced AS i USING (currency)
CROSS JOIN use AS u
CROSS JOIN size AS s
ORDER BY m.currency
