-- Check: every node-hour of the inventory is either paid for by a charge or named among the gaps: nothing is silently free.
-- Invariant: 6
-- Tier: always
-- Reads: node_hour, node_hour_cost, gap

SELECT n.cluster, n.node, min(n.hour_number) AS first_hour_number, count(*) AS hours
FROM node_hour AS n
ANTI JOIN node_hour_cost AS c USING (cluster, node, hour_number)
WHERE n.hour_number >= seconds_of($period_start) // 3600 AND n.hour_number < seconds_of($period_end) // 3600
  AND n.cluster || '/' || n.node NOT IN (SELECT subject FROM gap WHERE kind = 'unpriced_node')
GROUP BY ALL
