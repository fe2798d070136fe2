-- Purpose: the demo's 107 nodes of 8 GPUs. The trace gives quotas in whole nodes, not node names: these are made up.
-- Grain: none
-- Reads: source

SELECT
    'earth' AS cluster, printf('earth-%03d', n) AS node, 8 AS gpu_count, '2020-04-01T00:00:00Z' AS valid_from, NULL AS valid_to,
    'earth-v100' AS pool, 'demo-cloud' AS provider, printf('i-earth-%03d', n) AS resource_id, '8xv100' AS instance_type,
    'V100' AS gpu_model
FROM range(1, 1 + CAST((SELECT sum(gpus) // 8 FROM (SELECT max(gpus_capacity) AS gpus FROM source GROUP BY vc)) AS BIGINT)) AS t(n)
ORDER BY n
