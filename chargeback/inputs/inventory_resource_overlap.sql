-- Rule: a cloud resource is one node at any time; a charge must not find two.
-- Kind: inventory
-- Reads: staged, node

WITH other AS (
    SELECT cluster, node, resource_id, valid_from, valid_to, source_row, source_file FROM node WHERE source_file <> $file
    UNION ALL BY NAME
    SELECT cluster, node, resource_id, valid_from, valid_to, source_row, $file AS source_file FROM staged
)
SELECT s.source_row, 'resource_id' AS column_name, s.resource_id AS value,
       'is also the resource of ' || min(o.cluster || '/' || o.node) || ' at the same time' AS message
FROM staged AS s
JOIN other AS o
    ON o.resource_id = s.resource_id AND (o.cluster, o.node) <> (s.cluster, s.node)
   AND s.valid_from < coalesce(o.valid_to, 'infinity'::TIMESTAMPTZ)
   AND o.valid_from < coalesce(s.valid_to, 'infinity'::TIMESTAMPTZ)
GROUP BY s.source_row, s.resource_id
ORDER BY s.source_row
LIMIT $max_problems
