-- Purpose: who asked the two model servers for how many tokens: two weeks of real clients, laid on 18 to 31 May. The trace
--   knows hours from its start and no date. A model has a server of its own. Clients whose tokens the trace does not
--   tell have empty counts.
-- Grain: none
-- Reads: source

SELECT
    replace(model, 'm-', 'llm-') AS server, model || '/client-' || client AS tenant, model,
    strftime(TIMESTAMP '2020-05-18' + to_seconds(hour_s), '%Y-%m-%dT%H:%M:%SZ') AS hour_start,
    prompt_tokens AS input_tokens, output_tokens, requests
FROM source
ORDER BY hour_s, model, client
