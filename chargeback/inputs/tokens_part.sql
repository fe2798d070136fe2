-- Rule: cached input tokens are part of the input tokens; failed and cached requests are part of the requests.
-- Kind: tokens
-- Reads: staged

WITH part AS (
    SELECT source_row, 'cached_input_tokens' AS column_name, cached_input_tokens AS part,
           'is more than input_tokens, which include the cached ones' AS message
    FROM staged
    WHERE cached_input_tokens > input_tokens
    UNION ALL
    SELECT source_row, 'failed_requests', failed_requests, 'is more than requests, of which the failed are part'
    FROM staged
    WHERE failed_requests > requests
    UNION ALL
    SELECT source_row, 'cache_hit_requests', cache_hit_requests,
           'is more than requests, of which those answered by a cache are part'
    FROM staged
    WHERE cache_hit_requests > requests
)
SELECT source_row, column_name, CAST(part AS VARCHAR) AS value, message
FROM part
ORDER BY source_row, column_name
LIMIT $max_problems
