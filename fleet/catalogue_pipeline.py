"""Metrics of the pipeline itself: collectors and spool on a node, ingest on the hub.

They tell whether the others can be believed: a collector that is stuck, a node that sees fewer devices than it
should, a spool that fills, a hub that falls behind.
"""

from fleet.metric import Metric

_COLLECTOR = ("node", "collector")

PIPELINE_METRICS: tuple[Metric, ...] = (
    Metric("gputally_agent_build_info", "info", "", ("node", "version", "boot_id"),
           "Version of the agent and boot of the machine it runs on."),
    Metric("gputally_agent_expected_gpus", "gauge", "gpus", ("node",),
           "Physical devices this node has shown since the agent started, or is configured to have."),
    Metric("gputally_agent_seen_gpus", "gauge", "gpus", ("node",),
           "Physical devices that could be read at the last visit."),
    Metric("gputally_agent_window_blind_seconds_total", "counter", "seconds", ("node",),
           "Device time in closed windows in which nothing was observed."),
    Metric("gputally_agent_device_conflict_events_total", "counter", "events", ("node",),
           "Times that two owners claimed the same exclusive device."),
    Metric("gputally_agent_unattributed_claims", "gauge", "claims", ("node", "reason"),
           "Device ids that the scheduler gave away and that name no device of this node."),
    Metric("gputally_collector_outcome_info", "info", "", (*_COLLECTOR, "outcome"),
           "How the last visit ended: ok, failed, overdue or absent (the source is not on this node)."),
    Metric("gputally_collector_visit_duration_seconds", "gauge", "seconds", _COLLECTOR,
           "How long the last visit took; grows while a visit is overdue."),
    Metric("gputally_collector_staleness_seconds", "gauge", "seconds", _COLLECTOR,
           "Age of the newest data; absent before the first good visit."),
    Metric("gputally_collector_failed_events_total", "counter", "events", (*_COLLECTOR, "outcome"),
           "Visits that did not end well."),
    Metric("gputally_collector_replaced_events_total", "counter", "events", _COLLECTOR,
           "Worker processes replaced because a visit hung."),
    Metric("gputally_collector_rejected_events_total", "counter", "events", (*_COLLECTOR, "reason"),
           "Values and lines that could not be believed."),
    Metric("gputally_push_spooled_batches", "gauge", "batches", ("node",),
           "Batches on disk that the hub has not acknowledged."),
    Metric("gputally_push_spooled_bytes", "gauge", "bytes", ("node",),
           "Their size."),
    Metric("gputally_push_oldest_batch_seconds", "gauge", "seconds", ("node",),
           "Age of the oldest of them; absent when there is none."),
    Metric("gputally_push_acked_batches_total", "counter", "batches", ("node",),
           "Batches that the hub has in the lake."),
    Metric("gputally_push_dropped_batches_total", "counter", "batches", ("node", "reason"),
           "Batches given up: spool_full (the oldest go first) or refused (the hub will never take them)."),
    Metric("gputally_push_failed_events_total", "counter", "events", ("node", "reason"),
           "Attempts to reach the hub that failed."),
    Metric("gputally_hub_received_batches_total", "counter", "batches", (),
           "Batches that arrived."),
    Metric("gputally_hub_acked_batches_total", "counter", "batches", ("outcome",),
           "Batches acknowledged after the commit: stored, or known (they had been stored before)."),
    Metric("gputally_hub_refused_batches_total", "counter", "batches", ("reason",),
           "Batches not taken."),
    Metric("gputally_hub_stored_rows_total", "counter", "rows", ("table",),
           "Rows written to the lake."),
    Metric("gputally_hub_waiting_rows", "gauge", "rows", (),
           "Rows received and not yet committed; bounded, senders wait."),
    Metric("gputally_hub_commit_duration_seconds", "histogram", "seconds", (),
           "Time of one group commit."),
    Metric("gputally_hub_ingest_lag_seconds", "histogram", "seconds", (),
           "From the end of a window on the node to its commit."),
    Metric("gputally_hub_clock_skew_seconds", "gauge", "seconds", ("node",),
           "Clock of a node minus the hub's, at the last batch."),
)  # fmt: skip
"""In the order in which data flows: collector, spool, hub."""
