"""Envoy AI Gateway 1.1: token usage by the tenant label that its operator made of a request header.

Names are those of its `internal/metrics/genai.go`, which follow OpenTelemetry's gen_ai conventions. Cached input is
part of input. The label of the tenant is whatever the operator called it; `x_tenant_id` is taken unless told.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.gateway import GatewayMapping
from collectors.serving.mapping import EngineMapping, Signal, Source

_DURATION = "gen_ai_server_request_duration_seconds_count"


def _tokens(signal: str, kind: str) -> Signal:
    return Signal(signal, (Source("gen_ai_client_token_usage_sum", where={"gen_ai_token_type": kind}),))


ENVOY_AI_GATEWAY: Final = GatewayMapping(
    engine=EngineMapping(
        kind="envoy_ai_gateway",
        signals=(
            _tokens("prompt_tokens", "input"),
            _tokens("prompt_tokens_cached", "cached_input"),
            _tokens("generation_tokens", "output"),
            Signal("requests_received", (Source(_DURATION),)),
            Signal("requests_finished", (Source(_DURATION, where={"error_type": ""}),)),
            Signal("requests_failed", (Source(_DURATION, where={"error_type": ".+"}),)),
        ),
        required=("requests_received", "prompt_tokens"),
        model_labels=("gen_ai_request_model", "gen_ai_original_model"),
    ),
    tenant_labels=("x_tenant_id",),
    served_labels=("gen_ai_response_model",),
)
