-- Purpose: what labels and tags say, once for each distinct set of them: a row that is joined to its labels one by one is
--   counted once for each. What stands nearer to the resource wins: its labels, then its tags, then its project's labels.
-- Grain: labels, tags, project_labels, system_labels
-- Reads: gcp_row

WITH label_set AS (
    SELECT *, row_number() OVER () AS set_no
    FROM (SELECT DISTINCT labels, tags, project_labels, system_labels FROM gcp_row)
),
entry AS (
    SELECT set_no, 1 AS nearness, unnest(json_transform(project_labels, '[{"key": "VARCHAR", "value": "VARCHAR"}]')) AS label
    FROM label_set
    UNION ALL
    SELECT set_no, 2, {'key': concat_ws('/', nullif(tag.namespace, ''), tag.key), 'value': tag.value}
    FROM (
        SELECT set_no, unnest(json_transform(tags, '[{"key": "VARCHAR", "value": "VARCHAR", "namespace": "VARCHAR"}]')) AS tag
        FROM label_set
    )
    UNION ALL
    SELECT set_no, 3, unnest(json_transform(labels, '[{"key": "VARCHAR", "value": "VARCHAR"}]')) FROM label_set
),
nearest AS (
    SELECT
        set_no, label.key AS key,
        arg_max(coalesce(label.value, ''), {'nearness': nearness, 'value': coalesce(label.value, '')}) AS value
    FROM entry
    WHERE label.key <> ''
    GROUP BY ALL
),
joined AS (
    SELECT
        set_no, CAST(to_json(map(list(key ORDER BY key), list(value ORDER BY key))) AS VARCHAR) AS label_json,
        nullif(max(value) FILTER (WHERE key = 'goog-originating-sku-id'), '') AS originating_sku
    FROM nearest GROUP BY set_no
),
system_entry AS (
    SELECT set_no, unnest(json_transform(system_labels, '[{"key": "VARCHAR", "value": "VARCHAR"}]')) AS label FROM label_set
),
of_system AS (
    SELECT
        set_no,
        nullif(max(label.value) FILTER (WHERE label.key = 'compute.googleapis.com/machine_spec'), '') AS machine,
        nullif(max(label.value) FILTER (WHERE label.key = 'compute.googleapis.com/reservation_name'), '') AS reservation,
        nullif(max(label.value) FILTER (WHERE label.key = 'compute.googleapis.com/reservation_project_id'), '')
            AS reservation_project,
        max(label.value) FILTER (WHERE label.key = 'compute.googleapis.com/is_unused_reservation') = 'true'
            AS is_unused_reservation
    FROM system_entry GROUP BY set_no
)
SELECT
    s.labels, s.tags, s.project_labels, s.system_labels, j.label_json, j.originating_sku, y.machine,
    concat_ws('/', CASE WHEN y.reservation IS NOT NULL THEN y.reservation_project END, y.reservation) AS reservation,
    coalesce(y.is_unused_reservation, false) AS is_unused_reservation
FROM label_set AS s
LEFT JOIN joined AS j USING (set_no)
LEFT JOIN of_system AS y USING (set_no)
