-- Rule: a team has one cost centre and one GL account at any time, over all team files.
-- Kind: teams
-- Reads: staged, team_rule

WITH stated AS (
    SELECT team, cost_centre, gl_account, valid_from, valid_to, source_row, $file AS source_file FROM staged
    UNION ALL BY NAME
    SELECT team, cost_centre, gl_account, valid_from, valid_to, source_row, source_file FROM team_rule WHERE source_file <> $file
)
SELECT s.source_row, 'cost_centre' AS column_name, s.team AS value, 'has another cost centre or GL account in ' || min(o.source_file || ' row ' || o.source_row) AS message
FROM staged AS s
JOIN stated AS o
    ON o.team = s.team AND (o.cost_centre, o.gl_account) IS DISTINCT FROM (s.cost_centre, s.gl_account)
   AND coalesce(s.valid_from, '-infinity'::TIMESTAMPTZ) < coalesce(o.valid_to, 'infinity'::TIMESTAMPTZ)
   AND coalesce(o.valid_from, '-infinity'::TIMESTAMPTZ) < coalesce(s.valid_to, 'infinity'::TIMESTAMPTZ)
GROUP BY s.source_row, s.team
ORDER BY s.source_row
LIMIT $max_problems
