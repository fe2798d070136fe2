-- Purpose: gaps of the bill itself: charges without an invoice, prepaid money that nothing spreads over time, commitments
--   that nobody billed or whose use is unknown, amounts without a rate to the reporting currency.
-- Grain: none
-- Reads: invoice_total, prepaid, commitment_term, commitment_account, commitment_hour, statement_line, exchange_rate, setting

WITH no_invoice AS (
    SELECT
        'missing_invoice' AS kind, issuer AS subject, sum(billed_total) AS amount, currency,
        'charges without an invoice total to reconcile with' AS reason
    FROM invoice_total WHERE status = 'no_invoice' GROUP BY ALL
),
still_open AS (
    SELECT
        'open_invoice' AS kind, issuer || coalesce(' ' || invoice_id, '') AS subject, residual AS amount, currency,
        'the invoice is not issued yet and does not match its charges: the issuer is not reconciled' AS reason
    FROM invoice_total WHERE status = 'open'
),
endless AS (
    SELECT
        'prepaid_without_term' AS kind, commitment AS subject, closing AS amount, currency,
        'paid ahead and used by nothing: no charge consumes it and no loaded commitment says over which time' AS reason
    FROM prepaid WHERE status = 'no_term'
),
unpaid AS (
    SELECT
        'commitment_not_billed' AS kind, commitment_id AS subject, upfront_amount AS amount, currency,
        'its upfront fee is in no loaded charge: nothing of it is amortised' AS reason
    FROM commitment_term
    WHERE upfront_amount > 0 AND NOT is_cancelled AND term_from_s < seconds_of($period_end)
      AND term_to_s > seconds_of($period_start) AND commitment_key NOT IN (SELECT commitment_key FROM commitment_account)
),
unseen AS (
    SELECT
        'commitment_use_unknown' AS kind, commitment AS subject, from_pico(sum(amount_pico)) AS amount, currency,
        'no usage names it and it names no pool: who used it is unknown' AS reason
    FROM commitment_hour WHERE pool_kind = 'unknown' GROUP BY ALL
),
disputed AS (
    SELECT
        'commitment_conflict' AS kind, commitment_id AS subject, NULL AS amount, currency,
        'loaded files disagree about its term, amounts or quantity: the first file by name counts' AS reason
    FROM commitment_term WHERE is_disputed
),
no_rate AS (
    SELECT
        'missing_rate' AS kind, l.currency || ' in ' || s.reporting_currency AS subject, sum(l.amount) AS amount, l.currency,
        'no rate of the period is loaded: not shown in the reporting currency' AS reason
    FROM statement_line AS l
    CROSS JOIN setting AS s
    WHERE l.currency <> s.reporting_currency AND NOT EXISTS (
        FROM exchange_rate AS r
        WHERE r.period = $period AND r.currency = l.currency AND r.reporting_currency = s.reporting_currency
    )
    GROUP BY ALL
)
SELECT kind, subject, NULL AS from_hour, NULL AS to_hour, NULL AS gpu_microseconds, amount, currency, reason
FROM (
    FROM no_invoice UNION ALL BY NAME FROM still_open UNION ALL BY NAME FROM endless UNION ALL BY NAME FROM unpaid
    UNION ALL BY NAME FROM unseen UNION ALL BY NAME FROM disputed UNION ALL BY NAME FROM no_rate
)
