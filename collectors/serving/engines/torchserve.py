"""TorchServe 0.12: its metrics API, with `metrics_mode=prometheus`.

Names are those of its `metrics.yaml`. What they mean was seen on a real server: `ts_inference_requests_total` counts
attempts, those answered 503 included, so it is not the work done; `Requests2XX` counts calls of the management API
and each reading of this page too, so it is no traffic; `QueueTime` and `PredictionTime` keep their last value for
ever. The sums of latency have no count beside them that fits. So how many requests were served is not told per
model; attempts less failures is that number for the whole server.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.mapping import EngineMapping, Signal, Source

TORCHSERVE: Final = EngineMapping(
    kind="torchserve",
    signals=(
        spelled("requests_received", "ts_inference_requests_total"),
        # Of the host: no series says which model a failure was of.
        spelled("requests_failed", "Requests5XX"),
        # One per worker, which load side by side.
        Signal("model_load_seconds", (Source("WorkerLoadTime", scale=0.001),), combine="max"),
    ),
    required=("model_load_seconds",),
    model_labels=("model_name", "ModelName"),
)
