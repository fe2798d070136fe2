"""Ray Serve 2.60: deployments, as the metrics export of a Ray node shows them.

Names are those of `ray/serve/_private`. A row is a deployment; the row without a model is the proxy, which alone knows
how HTTP requests ended (a 503 never reaches a replica). Values are up to 10 s old, so shorter steps mean nothing, and
`replica_utilization_percent` is a mean over minutes: left out. An engine inside Ray prints its own names with `ray_`
in front on the same page: that is a second entry with the kind of that engine.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.mapping import EngineMapping, Signal, Source


def _counter(signal: str, name: str) -> Signal:
    """Ray exports a counter twice, as `X_total` and as a gauge `X`, and old ones the latter only."""
    return spelled(signal, f"ray_serve_{name}_total", f"ray_serve_{name}")


RAY_SERVE: Final = EngineMapping(
    kind="ray_serve",
    signals=(
        spelled("requests_running", "ray_serve_replica_processing_queries"),
        spelled("requests_waiting", "ray_serve_deployment_queued_queries"),
        _counter("requests_received", "handle_request_counter"),
        # Of replicas, and successes only: seen on 2.60.
        _counter("requests_finished", "deployment_request_counter"),
        Signal("requests_finished_by_reason", (Source("ray_serve_num_http_requests_total", by="status_code"),)),
        _counter("requests_failed", "deployment_error_counter"),
        spelled("request_latency_seconds", "ray_serve_deployment_processing_latency_ms", scale=0.001),
    ),
    required=("requests_running",),
    model_labels=("deployment",),
)
