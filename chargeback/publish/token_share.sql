-- Purpose: who used how many tokens, hour by hour.
-- Grain: none
-- Reads: token_share

SELECT $period AS period, hour_at(hour_number) AS hour_start, *
FROM token_share
