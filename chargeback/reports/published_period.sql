-- Purpose: every published period with its newest build, the newest period first.
-- Grain: period
-- Scope: fleet
-- Reads: build

SELECT period, build_id, version, built_at, program_version
FROM lake.build
QUALIFY row_number() OVER (PARTITION BY period ORDER BY version DESC) = 1
ORDER BY period DESC
