-- Purpose: the 16 virtual clusters as teams, the clients of the model servers as three more, by the digits of their
--   number, and the central team. Cost centres, the GL account and the teams of clients are made up.
-- Grain: none
-- Reads: source

SELECT
    vc AS team, printf('CC-%04d', 1000 + 10 * row_number() OVER (ORDER BY vc)) AS cost_centre, '6400' AS gl_account,
    NULL AS match_user
FROM (SELECT DISTINCT vc FROM source)
UNION ALL
SELECT *
FROM (VALUES
    ('apps-a', 'CC-2010', '6400', '*/client-[0-9]'), ('apps-b', 'CC-2020', '6400', '*/client-[0-9][0-9]'),
    ('apps-c', 'CC-2030', '6400', '*/client-[0-9][0-9][0-9]'), ('platform', 'CC-3000', '6400', NULL)
)
ORDER BY cost_centre
