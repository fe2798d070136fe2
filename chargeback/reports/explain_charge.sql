-- Purpose: the invoice lines behind one team's money in one category: its postings followed back through pools and nodes to
--   charges. At each account and hour the team's part is spread over what flowed in, in proportion; integers throughout, so
--   a part is short of the exact one by less than 10^-12 per step.
--   For what the period used up of a commitment, the row of the commitments file stands, for a part of the cost of owned
--   hardware that of the assets file.
-- Grain: none
-- Scope: team
-- Reads: posting, charge, commitment_charge, asset_charge, snapshot

WITH RECURSIVE charge_line AS (
    SELECT
        snapshot_id, source_row, snapshot_id AS file_snapshot_id, part, coalesce(part_row, source_row) AS file_row,
        invoice_issuer AS issuer, invoice_id, resource_id, charge_period_start, charge_description, billed_cost, effective_cost
    FROM lake.charge
    UNION ALL BY NAME
    SELECT
        snapshot_id, source_row, commitment_snapshot_id AS file_snapshot_id, commitment_row AS file_row, invoice_issuer AS issuer,
        commitment_id AS resource_id, charge_period_start, 'amortised' AS charge_description, billed_cost, effective_cost
    FROM lake.commitment_charge WHERE period = $period
    UNION ALL BY NAME
    SELECT
        snapshot_id, source_row, asset_snapshot_id AS file_snapshot_id, asset_row AS file_row, invoice_issuer AS issuer, invoice_id,
        resource_id, charge_period_start, charge_description, billed_cost, effective_cost
    FROM lake.asset_charge WHERE period = $period
),
of_period AS (
    SELECT
        currency, hour_start, from_account, to_account, charge_snapshot_id, charge_row,
        CAST(amount * 1000000000000 AS HUGEINT) AS amount_pico, category, team
    FROM lake.posting
    WHERE period = $period AND amount <> 0
),
inflow AS (
    SELECT currency, hour_start, to_account, from_account, charge_snapshot_id, charge_row, sum(amount_pico) AS amount_pico
    FROM of_period
    WHERE NOT starts_with(to_account, 'team:')
    GROUP BY ALL
),
total AS (
    SELECT currency, hour_start, to_account, sum(amount_pico) AS total_pico
    FROM inflow GROUP BY ALL HAVING sum(amount_pico) <> 0
),
walk AS (
    SELECT
        0 AS depth, currency, hour_start, from_account AS account, CAST(sum(amount_pico) AS HUGEINT) AS part_pico,
        CAST(NULL AS VARCHAR) AS charge_snapshot_id, CAST(NULL AS BIGINT) AS charge_row
    FROM of_period
    WHERE starts_with(to_account, 'team:') AND list_contains($teams, team) AND ($category IS NULL OR category = $category)
    GROUP BY ALL
    UNION ALL
    SELECT
        w.depth + 1, w.currency, w.hour_start, i.from_account,
        -- part * inflow // total in two halves (the model's split_of): the whole product may leave 128 bits.
        CAST(
            w.part_pico * (i.amount_pico // 1000000000) // t.total_pico * 1000000000
            + (w.part_pico * (i.amount_pico // 1000000000) % t.total_pico * 1000000000
                + w.part_pico * (i.amount_pico % 1000000000)) // t.total_pico
            AS HUGEINT
        ),
        i.charge_snapshot_id, i.charge_row
    FROM walk AS w
    JOIN inflow AS i ON i.currency = w.currency AND i.hour_start = w.hour_start AND i.to_account = w.account
    JOIN total AS t ON t.currency = w.currency AND t.hour_start = w.hour_start AND t.to_account = w.account
    WHERE w.charge_row IS NULL
)
SELECT
    coalesce(c.part, s.source) AS source_file, c.file_row AS source_row, c.issuer, c.invoice_id, c.resource_id,
    c.charge_period_start, c.charge_description, c.billed_cost, c.effective_cost, w.currency,
    CAST(sum(w.part_pico) AS DECIMAL(38, 0)) AS part_pico
FROM walk AS w
JOIN charge_line AS c ON c.snapshot_id = w.charge_snapshot_id AND c.source_row = w.charge_row
JOIN (SELECT snapshot_id AS file_snapshot_id, max(source) AS source FROM lake.snapshot GROUP BY snapshot_id) AS s
    USING (file_snapshot_id)
WHERE w.charge_row IS NOT NULL
GROUP BY ALL
ORDER BY abs(sum(w.part_pico)) DESC, source_file, source_row
