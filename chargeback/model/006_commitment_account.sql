-- Purpose: which prepaid accounts belong to which commitment, and what part of an account is whose.
--   An account belongs to the commitment whose id it has, whole or as the last part of a longer one (an ARN).
--   The fee of an AWS Capacity Block names no reservation: its account is `capacity-block:<region>/<type>/<day>`. It is that
--   of the blocks of this region and type that start on that day, by their instance-hours. Some fees are dated to the day
--   of purchase instead: then it is that of the next block to start whose own day has no fee, one of this price first.
-- Grain: commitment_key, issuer, currency, account
-- Reads: commitment_term, prepaid_movement

WITH account AS (
    SELECT
        issuer, currency, commitment AS account, sum(once_amount) AS paid_amount,
        lower(commitment) AS account_key,
        regexp_extract(
            lower(commitment), '^capacity-block:([^/]*)/([^/]*)/(\d{4}-\d{2}-\d{2})$', ['region', 'instance_type', 'day']
        ) AS block
    FROM prepaid_movement
    GROUP BY issuer, currency, commitment
),
fee AS (
    SELECT *, seconds_of(CAST(try_cast(block.day AS DATE) AS TIMESTAMP)) AS fee_from_s
    FROM account WHERE block.day <> '' AND try_cast(block.day AS DATE) IS NOT NULL
),
candidate AS (
    SELECT
        f.issuer, f.currency, f.account, t.commitment_key, t.term_from_s,
        t.term_from_s >= f.fee_from_s + 86400 AS is_later,
        t.upfront_amount IS DISTINCT FROM f.paid_amount AS is_of_another_price
    FROM fee AS f
    JOIN commitment_term AS t
        ON t.kind = 'capacity_block' AND NOT t.is_cancelled AND t.region = f.block.region
       AND t.instance_type = f.block.instance_type AND t.term_from_s >= f.fee_from_s
),
on_its_day AS (
    SELECT * FROM candidate WHERE NOT is_later
),
bought_before AS (
    SELECT *
    FROM candidate
    WHERE is_later
      AND (issuer, currency, account) NOT IN (SELECT (issuer, currency, account) FROM on_its_day)
      AND commitment_key NOT IN (SELECT commitment_key FROM on_its_day)
    QUALIFY rank() OVER (PARTITION BY issuer, currency, account ORDER BY is_of_another_price, term_from_s) = 1
),
matched AS (
    SELECT issuer, currency, account, commitment_key FROM on_its_day
    UNION ALL SELECT issuer, currency, account, commitment_key FROM bought_before
    UNION ALL
    SELECT a.issuer, a.currency, a.account, t.commitment_key
    FROM account AS a
    JOIN commitment_term AS t
        ON t.commitment_key = a.account_key
        OR (t.commitment_key = split_part(a.account_key, '/', -1) AND a.account_key NOT IN (SELECT commitment_key FROM commitment_term))
),
weighed AS (
    SELECT
        m.*, CAST(coalesce(t.quantity_millionths, 1000000) AS HUGEINT) * greatest(t.term_to_s - t.term_from_s, 1) AS weight
    FROM matched AS m JOIN commitment_term AS t USING (commitment_key)
)
SELECT
    commitment_key, issuer, currency, account, weight,
    sum(weight) OVER (PARTITION BY issuer, currency, account ORDER BY commitment_key) AS weight_to,
    sum(weight) OVER (PARTITION BY issuer, currency, account) AS weight_all
FROM weighed
