"""Servers behind KServe: its own Python model server, and MLServer.

KServe's runtimes have no metrics in common, so each is a kind of its own. Neither has tokens, queues or time of
devices.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.mapping import EngineMapping, Signal, Source

_PREDICTED = "request_predict_seconds_count"
_ANSWERED = "request_postprocess_seconds_count"

KSERVE: Final = EngineMapping(
    kind="kserve",
    signals=(
        spelled("requests_received", "request_preprocess_seconds_count"),
        spelled("requests_finished", _ANSWERED),
        # No series tells of errors: a prediction that failed has no postprocessing. Seen on KServe 0.21, exact at rest.
        Signal("requests_failed", (Source(_PREDICTED, minus=(Source(_ANSWERED),)),)),
        # The model alone, without pre- and postprocessing.
        spelled("request_latency_seconds", "request_predict_seconds", is_estimate=True),
    ),
    required=("requests_received",),
    model_labels=("model_name",),
)
"""KServe 0.21's Python server (`serving.kserve.io/enable-prometheus-scraping`); four histograms and nothing else."""

MLSERVER: Final = EngineMapping(
    kind="mlserver",
    signals=(
        spelled("requests_running", "rest_server_requests_in_progress"),
        spelled("requests_finished", "model_infer_request_success_total"),
        spelled("requests_failed", "model_infer_request_failure_total"),
        spelled("request_latency_seconds", "model_infer_request_duration"),
    ),
    required=("requests_finished",),
    model_labels=("model",),
)
"""MLServer 1.7. A name that a client made up becomes a model here: such a row has failures only."""
