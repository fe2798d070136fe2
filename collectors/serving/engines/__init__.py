"""The engines that are known, by kind. The kind of a server comes from configuration, never from its names.

Names alone do not tell: several engines print the same ones without any prefix.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from collectors.serving.engines.dynamo import DYNAMO
from collectors.serving.engines.envoy_ai_gateway import ENVOY_AI_GATEWAY
from collectors.serving.engines.inference_extension import INFERENCE_EXTENSION
from collectors.serving.engines.kserve import KSERVE, MLSERVER
from collectors.serving.engines.litellm import LITELLM
from collectors.serving.engines.llamacpp import LLAMACPP
from collectors.serving.engines.lmdeploy import LMDEPLOY
from collectors.serving.engines.nim import NIM
from collectors.serving.engines.ray_serve import RAY_SERVE
from collectors.serving.engines.sglang import SGLANG
from collectors.serving.engines.tgi import TGI
from collectors.serving.engines.torchserve import TORCHSERVE
from collectors.serving.engines.triton import TRITON
from collectors.serving.engines.trtllm import TRTLLM
from collectors.serving.engines.vllm import VLLM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.serving.gateway import GatewayMapping
    from collectors.serving.mapping import EngineMapping

ENGINES: Final[Mapping[str, EngineMapping]] = MappingProxyType(
    {
        "dynamo": DYNAMO,
        "kserve": KSERVE,
        "llamacpp": LLAMACPP,
        "lmdeploy": LMDEPLOY,
        "mlserver": MLSERVER,
        "nim": NIM,
        "ray_serve": RAY_SERVE,
        "sglang": SGLANG,
        "tgi": TGI,
        "torchserve": TORCHSERVE,
        "triton": TRITON,
        "trtllm": TRTLLM,
        "vllm": VLLM,
    }
)
"""Kinds of `gputally read` and of `[[agent.engines]]` in the configuration."""

GATEWAYS: Final[Mapping[str, GatewayMapping]] = MappingProxyType(
    {
        "envoy_ai_gateway": ENVOY_AI_GATEWAY,
        "inference_extension": INFERENCE_EXTENSION,
        "litellm": LITELLM,
    }
)
"""Kinds of gateways, whose rows are by tenant; none is the kind of an engine."""
