-- Purpose: the same quotas as the daily file has them, a second witness that disagrees on one day. A quota of 0 is no row.
-- Grain: none
-- Reads: source

SELECT
    'earth-v100' AS pool, team, gpus, strftime(date, '%Y-%m-%dT00:00:00Z') AS valid_from,
    strftime(date + 1, '%Y-%m-%dT00:00:00Z') AS valid_to
FROM (UNPIVOT source ON COLUMNS(* EXCLUDE (date, total)) INTO NAME team VALUE gpus)
WHERE gpus > 0
ORDER BY date, team
