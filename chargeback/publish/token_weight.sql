-- Purpose: what a token weighed on each server.
-- Grain: none
-- Reads: token_weight

SELECT $period AS period, *
FROM token_weight
