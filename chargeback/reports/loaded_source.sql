-- Purpose: what has been loaded so far, by kind of file: tells an empty lake from one that only lacks a build.
-- Grain: kind
-- Scope: fleet
-- Reads: snapshot

SELECT kind, count(DISTINCT source) AS source_count, max(loaded_at) AS last_loaded_at
FROM lake.snapshot
GROUP BY kind
ORDER BY kind
