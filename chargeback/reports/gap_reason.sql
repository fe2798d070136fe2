-- Purpose: what could not be priced, matched or mapped, counted by kind and reason; never silently zero.
-- Grain: kind, reason, currency
-- Scope: finance
-- Reads: gap

SELECT
    kind, reason, currency, count(*) AS gap_count, min(subject) AS first_subject, min(gap_from) AS gap_from,
    max(gap_to) AS gap_to, CAST(sum(gpu_microseconds) AS BIGINT) AS gpu_microseconds,
    CAST(sum(amount) AS DECIMAL(38, 12)) AS amount
FROM lake.gap
WHERE period = $period
GROUP BY kind, reason, currency
ORDER BY kind, gap_count DESC, reason
