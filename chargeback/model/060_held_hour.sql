-- Purpose: who held how much of what: each holding cut into hours by whole seconds, with its team resolved.
--   The team is the one the holding names, or that of the first matching rule of the team files (in file order) that is
--   valid at the time; neither means an unmapped owner (team NULL), which stays visible as `unattributed`.
--   What a shared model server holds names the server too (the first of the configured ones that matches); its cost goes
--   to the server's tenants, and the team is then the owner of the server.
-- Grain: snapshot_id, source_row, hour_number, is_placed
-- Reads: holder_interval, node_hour, node, device, team_rule, server_rule

WITH bounds AS (
    SELECT min(hour_number) * 3600 AS from_s, (max(hour_number) + 1) * 3600 AS to_s FROM node_hour
),
owner AS (
    SELECT DISTINCT namespace, workload, user_name FROM holder_interval WHERE team IS NULL
),
owner_rule AS (
    SELECT
        owner_key(o.namespace, o.workload, o.user_name) AS owner, r.team,
        coalesce(seconds_of(r.valid_from), -9000000000000) AS valid_from_s,
        coalesce(seconds_of(r.valid_to), 9000000000000) AS valid_to_s,
        row_number() OVER (ORDER BY r.source_file, r.source_row) AS rule_order
    FROM owner AS o
    JOIN team_rule AS r
        ON (r.match_namespace IS NOT NULL OR r.match_workload IS NOT NULL OR r.match_user IS NOT NULL)
       AND r.match_account IS NULL AND r.match_label IS NULL
       AND (r.match_namespace IS NULL OR o.namespace GLOB r.match_namespace)
       AND (r.match_workload IS NULL OR o.workload GLOB r.match_workload)
       AND (r.match_user IS NULL OR o.user_name GLOB r.match_user)
),
owner_server AS (
    SELECT owner_key(o.namespace, o.workload, o.user_name) AS owner, arg_min(s.server, s.server_order) AS server
    FROM (SELECT DISTINCT namespace, workload, user_name FROM holder_interval) AS o
    JOIN server_rule AS s
        ON (s.match_namespace IS NULL OR o.namespace GLOB s.match_namespace)
       AND (s.match_workload IS NULL OR o.workload GLOB s.match_workload)
    GROUP BY ALL
),
device_place AS (
    SELECT
        device, cluster, node, seconds_of(valid_from) AS valid_from_s,
        coalesce(seconds_of(valid_to), 9000000000000) AS valid_to_s
    FROM device
),
node_validity AS (
    SELECT cluster, node, seconds_of(valid_from) AS valid_from_s, coalesce(seconds_of(valid_to), 9000000000000) AS valid_to_s
    FROM node
),
-- A node named without its cluster: the loader has made sure that there is only one.
node_place AS (
    SELECT node, min(cluster) AS cluster FROM node_hour GROUP BY node
),
clipped AS (
    SELECT
        h.*, greatest(seconds_of(h.held_from), b.from_s) AS from_s, least(seconds_of(h.held_to), b.to_s) AS to_s
    FROM holder_interval AS h, bounds AS b
),
cut AS (
    SELECT *, unnest(range(from_s // 3600, (to_s - 1) // 3600 + 1)) AS hour_number FROM clipped WHERE from_s < to_s
),
piece AS (
    SELECT
        snapshot_id, source_row, hour_number, team AS named_team, owner_key(namespace, workload, user_name) AS owner,
        device, cluster, node, pool, CAST(gpus * 1000000 AS BIGINT) AS gpu_millionths,
        greatest(hour_number * 3600, from_s) AS piece_from_s, least(hour_number * 3600 + 3600, to_s) AS piece_to_s
    FROM cut
),
seated AS (
    SELECT p.* REPLACE (coalesce(p.cluster, d.cluster) AS cluster, coalesce(p.node, d.node) AS node)
    FROM piece AS p
    LEFT JOIN device_place AS d
        ON d.device = p.device AND d.valid_from_s <= p.piece_from_s AND d.valid_to_s > p.piece_from_s
),
named AS (
    SELECT s.* REPLACE (coalesce(s.cluster, n.cluster) AS cluster)
    FROM seated AS s
    LEFT JOIN node_place AS n USING (node)
),
-- Seconds of a piece in which its node was in the inventory: what lies outside was held of nothing that could be priced.
inside AS (
    SELECT
        m.snapshot_id, m.source_row, m.hour_number,
        sum(least(m.piece_to_s, v.valid_to_s) - greatest(m.piece_from_s, v.valid_from_s)) AS inside_s
    FROM named AS m
    JOIN node_validity AS v
        ON v.cluster = m.cluster AND v.node = m.node AND v.valid_from_s < m.piece_to_s AND v.valid_to_s > m.piece_from_s
    GROUP BY ALL
),
placed AS (
    SELECT
        m.* REPLACE (coalesce(m.pool, n.pool) AS pool), CASE WHEN m.named_team IS NULL THEN m.owner END AS unnamed_owner,
        m.piece_to_s - m.piece_from_s AS piece_s,
        CASE WHEN m.node IS NULL THEN m.piece_to_s - m.piece_from_s ELSE coalesce(i.inside_s, 0) END AS inside_s
    FROM named AS m
    LEFT JOIN node_hour AS n ON n.cluster = m.cluster AND n.node = m.node AND n.hour_number = m.hour_number
    LEFT JOIN inside AS i
        ON i.snapshot_id = m.snapshot_id AND i.source_row = m.source_row AND i.hour_number = m.hour_number
),
part AS (
    SELECT *, true AS is_placed, inside_s AS seconds FROM placed WHERE inside_s > 0
    UNION ALL BY NAME
    SELECT * REPLACE (NULL AS pool), false AS is_placed, piece_s - inside_s AS seconds FROM placed WHERE inside_s < piece_s
)
SELECT
    p.snapshot_id, p.source_row, p.hour_number, p.is_placed,
    coalesce(any_value(p.named_team), arg_min(r.team, r.rule_order)) AS team,
    any_value(p.cluster) AS cluster, any_value(p.node) AS node, any_value(p.pool) AS pool,
    CAST(any_value(p.gpu_millionths * p.seconds) AS BIGINT) AS held_gpu_microseconds, any_value(p.owner) AS owner,
    any_value(s.server) AS server
FROM part AS p
LEFT JOIN owner_server AS s ON s.owner = p.owner
LEFT JOIN owner_rule AS r
    ON r.owner = p.unnamed_owner AND r.valid_from_s <= p.piece_from_s AND r.valid_to_s > p.piece_from_s
GROUP BY p.snapshot_id, p.source_row, p.hour_number, p.is_placed
