"""LiteLLM's proxy, 1.106 to 1.110: tokens and requests by team, at `/metrics/`.

Names and labels are those of its `types/integrations/prometheus.py`; what they mean was checked against the clients
of a proxy that ran. `/metrics` answers 307 to `/metrics/`. Labels of nothing are the text "None". Spend is left out:
it is a float of list prices, and 0 for models of one's own.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.gateway import GatewayMapping
from collectors.serving.mapping import EngineMapping, Signal, Source

_REQUESTS = "litellm_proxy_total_requests_metric_total"

LITELLM: Final = GatewayMapping(
    engine=EngineMapping(
        kind="litellm",
        signals=(
            spelled("prompt_tokens", "litellm_input_tokens_metric_total"),
            spelled("prompt_tokens_cached", "litellm_input_cached_tokens_metric_total"),
            spelled("generation_tokens", "litellm_output_tokens_metric_total"),
            spelled("requests_received", _REQUESTS),
            Signal("requests_finished", (Source(_REQUESTS, where={"status_code": "2.."}),)),
            # A request with a wrong key has the status "None".
            Signal("requests_failed", (Source(_REQUESTS, where={"status_code": "(?!2..$).*"}),)),
            spelled("requests_running", "litellm_in_flight_requests"),
        ),
        required=("requests_running", "requests_received"),
        model_labels=("requested_model",),
    ),
    tenant_labels=("team",),
    served_labels=("model",),
)
