-- Purpose: how each pool was shared, with the sum of its weights beside each.
-- Grain: none
-- Reads: pool_weight

SELECT $period AS period, *, sum(weight) OVER (PARTITION BY currency, pool, kind) AS total_weight
FROM pool_weight
