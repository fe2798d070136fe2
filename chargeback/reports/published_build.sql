-- Purpose: the build shown for a period: the newest published one.
-- Grain: none
-- Scope: fleet
-- Reads: build

SELECT period, build_id, version, built_at, program_version, config_sha256, model_sha256, inputs
FROM lake.build
WHERE period = $period
ORDER BY version DESC
LIMIT 1
