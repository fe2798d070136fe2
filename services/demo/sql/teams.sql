-- Purpose: the 16 virtual clusters as teams; cost centres and the GL account are made up.
-- Grain: none
-- Reads: source

SELECT vc AS team, printf('CC-%04d', 1000 + 10 * row_number() OVER (ORDER BY vc)) AS cost_centre, '6400' AS gl_account
FROM (SELECT DISTINCT vc FROM source)
ORDER BY vc
