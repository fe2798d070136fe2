-- Rule: what is held is in the inventory, and its name means one thing.
-- Kind: holdings
-- Reads: staged, node, device

WITH place AS (
    SELECT DISTINCT cluster, node, coalesce(pool, 'default') AS pool FROM node
),
named AS (
    SELECT s.source_row, s.cluster, s.node, s.pool, s.device,
        (SELECT count(DISTINCT p.cluster) FROM place AS p WHERE p.node = s.node AND (s.cluster IS NULL OR p.cluster = s.cluster)) AS clusters
    FROM staged AS s
)
SELECT source_row, 'node' AS column_name, node AS value, 'is not in the inventory (load inventory first)' AS message
FROM named WHERE node IS NOT NULL AND clusters = 0
UNION ALL
SELECT source_row, 'node', node, 'is a node of several clusters: add the cluster column'
FROM named WHERE node IS NOT NULL AND clusters > 1
UNION ALL
SELECT source_row, 'pool', pool, 'is not a pool of the inventory (load inventory first)'
FROM named WHERE pool IS NOT NULL AND pool NOT IN (SELECT pool FROM place)
UNION ALL
SELECT source_row, 'device', device, 'is not a known device (load devices first)'
FROM named WHERE device IS NOT NULL AND device NOT IN (SELECT device FROM device)
ORDER BY source_row
LIMIT $max_problems
