-- Purpose: exact conversion between money and integer pico-units (10^-12), in which every split is computed.
-- Grain: none
-- Reads: nothing

CREATE OR REPLACE TEMP MACRO to_pico(amount) AS CAST(amount * 1000000000000 AS HUGEINT);
CREATE OR REPLACE TEMP MACRO from_pico(pico) AS
    CAST(CAST(pico AS DECIMAL(26, 0)) * CAST(0.000000000001 AS DECIMAL(12, 12)) AS DECIMAL(38, 12));
-- F(part) of a split: amount * part / whole, rounded away from zero, so that of equal shares the first in line is never the
-- smaller and takes the odd cent later. Taken in two halves, because the plain product leaves 128 bits when a pool of
-- billions of a small currency unit is shared by weights of the same size.
CREATE OR REPLACE TEMP MACRO split_rest(amount, part, whole) AS
    amount * (part // 1000000000) % whole * 1000000000 + amount * (part % 1000000000);
CREATE OR REPLACE TEMP MACRO split_of(amount, part, whole) AS
    amount * (part // 1000000000) // whole * 1000000000
    + split_rest(amount, part, whole) // whole
    + CASE WHEN split_rest(amount, part, whole) % whole <> 0 THEN sign(amount) ELSE 0 END;
-- Which account a charge's cost belongs to, by its FOCUS category, class and statuses.
CREATE OR REPLACE TEMP MACRO charge_kind(category, class, commitment_status, reservation_status) AS
    CASE
        WHEN lower(class) = 'correction' THEN 'adjustment'
        WHEN lower(category) = 'tax' THEN 'tax'
        WHEN lower(category) = 'credit' THEN 'credit'
        WHEN lower(category) = 'adjustment' THEN 'adjustment'
        WHEN lower(commitment_status) = 'unused' OR lower(reservation_status) = 'unused' THEN 'unused_commitment'
        WHEN lower(category) = 'usage' THEN 'usage'
        ELSE 'overhead'
    END;
CREATE OR REPLACE TEMP MACRO seconds_of(moment) AS epoch_us(moment) // 1000000;
CREATE OR REPLACE TEMP MACRO hour_at(hour_number) AS make_timestamptz(hour_number * 3600000000);
-- As fleet.identity.node_account: a slash or percent sign in a cluster name (a cloud's resource name) is escaped.
CREATE OR REPLACE TEMP MACRO node_account(cluster, node) AS
    'node:' || replace(replace(cluster, '%', '%25'), '/', '%2F') || '/' || node;
CREATE OR REPLACE TEMP MACRO owner_key(namespace, workload, user_name) AS
    coalesce(namespace, '') || '/' || coalesce(workload, '') || '/' || coalesce(user_name, '');
