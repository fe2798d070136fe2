-- Rule: a device sits in a node of the inventory, for a time that ends after it starts.
-- Kind: devices
-- Reads: staged, node

SELECT source_row, 'node' AS column_name, cluster || '/' || node AS value, 'is not in the inventory (load inventory first)' AS message
FROM staged AS s
WHERE NOT EXISTS (FROM node AS n WHERE n.cluster = s.cluster AND n.node = s.node)
UNION ALL
SELECT source_row, 'valid_to', strftime(valid_to, '%Y-%m-%dT%H:%M:%SZ'), 'is not after valid_from'
FROM staged
WHERE valid_to <= valid_from
ORDER BY source_row
LIMIT $max_problems
