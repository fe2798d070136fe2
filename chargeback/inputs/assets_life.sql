-- Rule: an asset is worth no more at the end of its life than at the start, and leaves service after it entered it.
-- Kind: assets
-- Reads: staged

SELECT source_row, 'salvage' AS column_name, CAST(salvage_amount AS VARCHAR) AS value, 'is above capex' AS message
FROM staged
WHERE salvage_amount > capex_amount
UNION ALL
SELECT source_row, 'in_service_to', strftime(in_service_to, '%Y-%m-%dT%H:%M:%SZ'), 'is not after in_service_from'
FROM staged
WHERE in_service_to <= in_service_from
ORDER BY source_row
LIMIT $max_problems
