-- Purpose: the energy of owned hardware in the period: measured where all GPUs of the node had their energy read (that of the
--   boards, and `base_kw` for all that their meters do not see), else what it is rated for. Where boards were read for
--   unequal parts of an hour, only as much time as all share counts as measured, with each board's energy for that time.
--   Microjoules: milliwatts times milliseconds. NULL = no power is stated to reckon with.
-- Grain: asset_snapshot_id, asset_row
-- Reads: asset_service, device_hour, node

WITH cut AS (
    SELECT *, unnest(range(from_s // 3600, (to_s - 1) // 3600 + 1)) AS hour_number FROM asset_service
),
served AS (
    SELECT
        asset_snapshot_id, asset_row, cluster, node, hour_number,
        (least(hour_number * 3600 + 3600, to_s) - greatest(hour_number * 3600, from_s)) * 1000 AS served_ms
    FROM cut
),
reading AS (
    SELECT
        s.*, d.energy_millijoules, d.energy_window_ms,
        least(s.served_ms, min(d.energy_window_ms) OVER (PARTITION BY s.asset_snapshot_id, s.asset_row, s.hour_number)) AS metered_ms
    FROM served AS s
    JOIN device_hour AS d USING (cluster, node, hour_number)
    WHERE d.energy_window_ms > 0
),
gpus AS (
    SELECT s.asset_snapshot_id, s.asset_row, s.hour_number, max(n.gpu_count) AS gpu_count
    FROM served AS s
    JOIN node AS n
        ON n.cluster = s.cluster AND n.node = s.node AND seconds_of(n.valid_from) < s.hour_number * 3600 + 3600
       AND coalesce(seconds_of(n.valid_to) > s.hour_number * 3600, true)
    GROUP BY ALL
),
metered AS (
    SELECT
        r.asset_snapshot_id, r.asset_row, r.hour_number, any_value(r.metered_ms) AS metered_ms,
        sum(CAST(r.energy_millijoules AS HUGEINT) * 1000 * r.metered_ms // r.energy_window_ms) AS board_microjoules
    FROM reading AS r
    JOIN gpus AS g USING (asset_snapshot_id, asset_row, hour_number)
    GROUP BY ALL
    HAVING count(*) >= any_value(g.gpu_count)
),
summed AS (
    SELECT
        s.asset_snapshot_id, s.asset_row, CAST(sum(coalesce(m.metered_ms, 0)) AS HUGEINT) AS metered_ms,
        CAST(sum(s.served_ms - coalesce(m.metered_ms, 0)) AS HUGEINT) AS blind_ms,
        CAST(coalesce(sum(m.board_microjoules), 0) AS HUGEINT) AS board_microjoules
    FROM served AS s
    LEFT JOIN metered AS m USING (asset_snapshot_id, asset_row, hour_number)
    GROUP BY ALL
)
SELECT
    p.asset_snapshot_id, p.asset_row, p.metered_ms, p.blind_ms,
    p.board_microjoules + coalesce(CAST(s.base_kw * 1000000 AS HUGEINT), 0) * p.metered_ms AS metered_microjoules,
    CAST(s.rated_kw * 1000000 AS HUGEINT) * p.blind_ms AS rated_microjoules
FROM summed AS p
JOIN asset_service AS s USING (asset_snapshot_id, asset_row)
