"""The kinds of model servers and gateways, by name, and what each can be told.

How a kind is read stands in `collectors.serving`; only the words are here, so that a configuration can be judged
without any of it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ENGINE_KINDS: Final = (
    "dynamo", "kserve", "llamacpp", "lmdeploy", "mlserver", "nim", "ray_serve", "sglang", "tgi", "torchserve", "triton",
    "trtllm", "vllm",
)  # fmt: skip
"""Model servers that show a metrics page."""
GATEWAY_KINDS: Final = ("envoy_ai_gateway", "inference_extension", "litellm")
"""Gateways in front of model servers, whose rows are by tenant."""
TRITON_GRPC: Final = "triton_grpc"
"""Triton's statistics by gRPC."""
TRTLLM_JSON: Final = "trtllm_json"
"""A page that only one reader may read, as reading takes its rows."""
SERVER_KINDS: Final = (*ENGINE_KINDS, *GATEWAY_KINDS, TRITON_GRPC, TRTLLM_JSON)
"""Kinds of `gputally read`, of `[[agent.engines]]` and of pods."""

KIND_OPTIONS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        **dict.fromkeys(ENGINE_KINDS, frozenset({"model", "role"})),
        "llamacpp": frozenset({"model", "role", "query_model"}),
        **dict.fromkeys(GATEWAY_KINDS, frozenset({"tenant_label"})),
        TRITON_GRPC: frozenset(),
        TRTLLM_JSON: frozenset({"model"}),
    }
)
"""What a kind can be told beside its place, its name and how it is reached; all else has no meaning for it."""

NEVER_TENANTS: Final = frozenset(
    {"api_key", "hashed_api_key", "client_ip", "user_agent", "user_email", "authorization", "model_id", "instance"}
)
"""Labels of gateways that name no tenant or must not leave the page."""
