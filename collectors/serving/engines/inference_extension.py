"""The endpoint picker of the Gateway API inference extension 1.5 (now llm-d's router).

Names are those of its `pkg/epp/metrics`. Tokens are by model and not by tenant; a tenant (`fairness_id`) shows in its
flow control queue only. The endpoint wants a bearer token unless told otherwise. Gauges of the pool repeat what its
engines say themselves and are left out.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.gateway import GatewayMapping
from collectors.serving.mapping import EngineMapping

INFERENCE_EXTENSION: Final = GatewayMapping(
    engine=EngineMapping(
        kind="inference_extension",
        signals=(
            spelled("prompt_tokens", "inference_objective_input_tokens_sum"),
            spelled("prompt_tokens_cached", "inference_objective_prompt_cached_tokens_sum"),
            spelled("generation_tokens", "inference_objective_output_tokens_sum"),
            spelled("requests_received", "inference_objective_request_total"),
            spelled("requests_finished", "inference_objective_request_duration_seconds_count"),
            spelled("requests_failed", "inference_objective_request_error_total"),
            spelled("requests_running", "inference_objective_running_requests"),
            spelled("requests_waiting", "inference_extension_flow_control_queue_size"),
        ),
        required=("requests_running", "requests_received"),
        model_labels=("model_name",),
    ),
    tenant_labels=("fairness_id",),
    served_labels=("target_model_name",),
)
