"""NVIDIA Dynamo 0.8 to 1.x: its frontend, and the part of its workers that is Dynamo's own.

Names are those of its documentation and of the example pages in it. Frontend and workers are servers of their own;
the frontend sees each request once, the workers see it again, so tokens are the frontend's. The engine inside a
worker prints its own names on the worker's page: that is a second entry with the kind of that engine.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.mapping import EngineMapping, Signal, Source

_INFLIGHT = "dynamo_frontend_inflight_requests"
_QUEUED = Source("dynamo_frontend_queued_requests", is_estimate=True)
_OUTPUT = "dynamo_frontend_output_sequence_tokens_sum"
_REQUESTS = "dynamo_frontend_requests_total"

DYNAMO: Final = EngineMapping(
    kind="dynamo",
    signals=(
        # In flight are the queued too, and a request is queued until its first token, so its prefill is in that.
        Signal(
            "requests_running",
            (
                Source(_INFLIGHT, minus=(_QUEUED,), is_estimate=True),
                Source("dynamo_component_inflight_requests"),
            ),
        ),
        Signal("requests_waiting", (_QUEUED,)),
        # A ratio, whatever its name says.
        spelled(
            "kv_used_ratio",
            "dynamo_component_gpu_cache_usage_percent",
            "dynamo_component_kvstats_gpu_cache_usage_percent",
        ),
        # Of the first worker that registered, however many there are.
        Signal(
            "kv_capacity_tokens",
            (
                Source(
                    "dynamo_frontend_model_total_kv_blocks",
                    times=(Source("dynamo_frontend_model_kv_cache_block_size"),),
                    is_estimate=True,
                ),
            ),
        ),
        spelled("prompt_tokens", "dynamo_frontend_input_sequence_tokens_sum"),
        spelled("prompt_tokens_cached", "dynamo_frontend_cached_tokens_sum"),
        Signal(
            "generation_tokens",
            (Source("dynamo_frontend_output_tokens_total"), Source(_OUTPUT, at_finish=True)),
        ),
        spelled("finished_generation_tokens", _OUTPUT),
        spelled("requests_received", "dynamo_component_requests_total"),
        Signal(
            "requests_finished",
            (
                Source(_REQUESTS, where={"status": "success"}),
                Source("dynamo_component_request_duration_seconds_count"),
            ),
        ),
        Signal("requests_failed", (Source(_REQUESTS, where={"status": "error"}),)),
        spelled("requests_aborted", "dynamo_frontend_model_cancellation_total", "dynamo_component_cancellation_total"),
        spelled("model_load_seconds", "dynamo_component_model_load_time_seconds"),
        spelled("time_to_first_token_seconds", "dynamo_frontend_time_to_first_token_seconds"),
        spelled("inter_token_latency_seconds", "dynamo_frontend_inter_token_latency_seconds"),
        spelled(
            "request_latency_seconds",
            "dynamo_frontend_request_duration_seconds",
            "dynamo_component_request_duration_seconds",
        ),
    ),
    required=("requests_running",),
    model_labels=("model",),
    # Request series of the frontend lower-case the model, those of its configuration do not.
    model_ignores_case=True,
)
