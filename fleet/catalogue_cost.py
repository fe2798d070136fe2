"""Metrics of money and of held capacity, as of the newest published build.

All are gauges, the running sums too. Spend goes down when a credit arrives, a correction is
posted or a month begins, and a counter that goes down reads as a restart: `rate()` would
invent the whole sum as new spend.

Money ends in `_amount` and carries the label `currency`. A unit in the name (`_dollars`)
would need one metric per currency and tempt a dashboard to add them; with the label, a sum
over currencies has to be asked for. The values are floats, as all Prometheus values are: good
for a graph and an alert, never for a booking, which is what the export is for.
"""

from fleet.metric import Metric

COST_METRICS: tuple[Metric, ...] = (
    Metric("gputally_spend_month_to_date_amount", "gauge", "amount", ("team", "category", "currency"),
           "Cost of a team in the open month so far, by category of the statement."),
    Metric("gputally_spend_last_day_amount", "gauge", "amount", ("team", "currency"),
           "Cost of a team in the last 24 hours for which costs are known."),
    Metric("gputally_spend_month_forecast_amount", "gauge", "amount", ("team", "currency"),
           "Cost of a team expected for the whole open month."),
    Metric("gputally_spend_month_budget_amount", "gauge", "amount", ("team", "currency"),
           "Budget of a team for the open month; absent where none is set."),
    Metric("gputally_spend_pool_month_to_date_amount", "gauge", "amount", ("pool", "pool_kind", "currency"),
           "Cost in a pool in the open month so far, before its policy shares it out."),
    Metric("gputally_spend_invoice_month_to_date_amount", "gauge", "amount", ("issuer", "currency"),
           "Billed by an issuer in the open month so far."),
    Metric("gputally_spend_node_hour_amount", "gauge", "amount", ("cluster", "node", "currency"),
           "Cost of a node in the last hour for which costs are known."),
    Metric("gputally_spend_attributed_ratio", "gauge", "ratio", (),
           "Share of the open month's cost that reached a team by what it held or used."),
    Metric("gputally_spend_unpriced_rows", "gauge", "rows", ("reason",),
           "Rows of the open month that could not be priced or mapped, by reason."),
    Metric("gputally_spend_built_timestamp_seconds", "gauge", "seconds", ("period",),
           "Unix time of the newest published build of a month."),
    Metric("gputally_spend_charged_until_timestamp_seconds", "gauge", "seconds", ("issuer",),
           "Unix time up to which an issuer's charges are known."),
    Metric("gputally_usage_month_to_date_gpu_seconds", "gauge", "seconds", ("team", "pool", "quantity"),
           "GPU time in the open month so far; quantity is billed, held, used or unknown."),
    Metric("gputally_usage_held_gpus", "gauge", "gpus", ("team", "pool"),
           "GPUs a team holds now; fractions are partitions and shared devices."),
    Metric("gputally_usage_quota_gpus", "gauge", "gpus", ("team", "pool"),
           "GPUs reserved for a team now."),
)  # fmt: skip
"""Spend first, then how far it can be trusted, then the capacity behind it."""
