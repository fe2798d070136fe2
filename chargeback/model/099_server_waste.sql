-- Purpose: what part of each hour of a shared model server came to nothing, as its engines tell, beside the ledger (no posting
--   comes of it). Each GPU-second is in one class at most, in this order: `cold_start` (a model was loaded), `asleep`, `idle`,
--   of the rest the share of the work that reached nobody (`wasted_work`, with the aborted requests as `events`), and last
--   `over_provisioned`: what replicas beyond those that are enough held, less what the other classes explain of that hour.
--   `preempted` only counts events: how much was computed again is not known, or among wasted_work.
--   A class without a row is unknown, as is one without an amount, whose `reason` says why; 0 is known.
--   A class is a share of what the server held in the hour, and costs that share of its cost.
-- Grain: server, team, currency, hour_number, class
-- Reads: node_time, server_held, held_hour, lost_work, replica_need, replica_surplus, engine_seen, server_cost

WITH held AS (
    SELECT server, hour_number, CAST(sum(held_gpu_microseconds) AS HUGEINT) AS held_gpu_microseconds
    FROM held_hour
    WHERE server IS NOT NULL AND is_placed AND pool IS NOT NULL
    GROUP BY ALL
),
server_time AS (
    SELECT
        t.server, t.hour_number, CAST(sum(t.cold_gpu_ms) AS HUGEINT) AS cold_gpu_ms,
        CAST(sum(t.asleep_gpu_ms) AS HUGEINT) AS asleep_gpu_ms, CAST(sum(t.idle_gpu_ms) AS HUGEINT) AS idle_gpu_ms,
        CAST(sum(t.rest_gpu_ms) AS HUGEINT) AS rest_gpu_ms,
        CAST(any_value(p.nodes) * 1000 * any_value(h.held_gpu_microseconds) AS HUGEINT) AS whole_gpu_ms
    FROM node_time AS t
    JOIN held AS h USING (server, hour_number)
    JOIN (SELECT server, hour_number, max(nodes) AS nodes FROM server_held GROUP BY ALL) AS p USING (server, hour_number)
    GROUP BY t.server, t.hour_number
),
told AS (
    SELECT
        server, from_ms // 3600000 AS hour_number, CAST(sum(preemption_events) AS BIGINT) AS preemption_events,
        CAST(sum(aborted_requests) AS BIGINT) AS aborted_requests
    FROM engine_seen
    GROUP BY ALL
),
need AS (
    SELECT server, min(reason) AS reason FROM replica_need GROUP BY server
),
wasted AS (
    SELECT
        t.*, CASE WHEN w.made_weight = 0 THEN 0 ELSE split_of(t.rest_gpu_ms, w.lost_weight, w.made_weight) END AS wasted_gpu_ms,
        coalesce(t.cold_gpu_ms, 0) + coalesce(t.asleep_gpu_ms, 0) + coalesce(t.idle_gpu_ms, 0) + coalesce(wasted_gpu_ms, 0)
            AS explained_gpu_ms
    FROM server_time AS t
    LEFT JOIN lost_work AS w USING (server, hour_number)
),
class_time AS (
    SELECT server, hour_number, whole_gpu_ms, 1 AS class_order, 'cold_start' AS class, cold_gpu_ms AS class_gpu_ms FROM wasted
    UNION ALL
    SELECT server, hour_number, whole_gpu_ms, 2, 'asleep', asleep_gpu_ms FROM wasted
    UNION ALL
    SELECT server, hour_number, whole_gpu_ms, 3, 'idle', idle_gpu_ms FROM wasted
    UNION ALL
    SELECT server, hour_number, whole_gpu_ms, 4, 'wasted_work', wasted_gpu_ms FROM wasted
    UNION ALL
    SELECT
        w.server, w.hour_number, w.whole_gpu_ms, 5, 'over_provisioned',
        greatest(coalesce(s.surplus_gpu_ms, 0) - w.explained_gpu_ms, 0)
    FROM wasted AS w
    JOIN need AS n ON n.server = w.server AND n.reason IS NULL
    LEFT JOIN replica_surplus AS s ON s.server = w.server AND s.hour_number = w.hour_number
),
laid AS (
    SELECT
        *, CAST(sum(class_gpu_ms) OVER (PARTITION BY server, hour_number ORDER BY class_order) AS HUGEINT) AS class_to_gpu_ms
    FROM class_time
    WHERE class_gpu_ms IS NOT NULL
),
cost AS (
    SELECT
        server, owner AS team, currency, hour_number, CAST(sum(cost_pico) AS HUGEINT) AS cost_pico,
        CAST(sum(gpu_microseconds) AS HUGEINT) AS gpu_microseconds
    FROM server_cost
    GROUP BY ALL
)
SELECT
    c.server, c.team, c.currency, c.hour_number, l.class,
    split_of(c.cost_pico, l.class_to_gpu_ms, l.whole_gpu_ms)
        - split_of(c.cost_pico, l.class_to_gpu_ms - l.class_gpu_ms, l.whole_gpu_ms) AS amount_pico,
    CAST(split_of(c.gpu_microseconds, l.class_to_gpu_ms, l.whole_gpu_ms)
        - split_of(c.gpu_microseconds, l.class_to_gpu_ms - l.class_gpu_ms, l.whole_gpu_ms) AS BIGINT) AS gpu_microseconds,
    CASE WHEN l.class = 'wasted_work' THEN t.aborted_requests END AS events, NULL AS reason
FROM cost AS c
JOIN laid AS l USING (server, hour_number)
LEFT JOIN told AS t USING (server, hour_number)
UNION ALL BY NAME
SELECT c.server, c.team, c.currency, c.hour_number, 'over_provisioned' AS class, n.reason
FROM cost AS c
JOIN wasted AS w USING (server, hour_number)
JOIN need AS n USING (server)
WHERE n.reason IS NOT NULL
UNION ALL BY NAME
SELECT
    c.server, c.team, c.currency, c.hour_number, 'preempted' AS class,
    CASE WHEN t.preemption_events = 0 THEN 0 END AS amount_pico,
    CASE WHEN t.preemption_events = 0 THEN 0 END AS gpu_microseconds, t.preemption_events AS events,
    CASE WHEN t.preemption_events > 0 THEN 'preemptions are counted, not the tokens that were computed again' END AS reason
FROM cost AS c
JOIN told AS t USING (server, hour_number)
WHERE t.preemption_events IS NOT NULL
