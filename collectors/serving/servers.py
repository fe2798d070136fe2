"""Every kind of model server and gateway that can be read, and the one that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collectors.serving.collector import EngineServer
from collectors.serving.engines import ENGINES, GATEWAYS
from collectors.serving.gateway import GatewayServer
from collectors.serving.trtllm_json import TrtllmJsonServer

if TYPE_CHECKING:
    from collectors.serving.triton_grpc import TritonGrpcServer

TRTLLM_JSON: Final = "trtllm_json"
TRITON_GRPC: Final = "triton_grpc"

SERVER_KINDS: Final = (*ENGINES, *GATEWAYS, TRITON_GRPC, TRTLLM_JSON)
"""Kinds of `gputally read` and of `[[agent.engines]]`. `trtllm_json` is asked for by name only: reading takes rows."""


def server_of(
    kind: str, source: str, **options: Any
) -> EngineServer | GatewayServer | TritonGrpcServer | TrtllmJsonServer:
    """What reads a server of a kind; KeyError for a kind that is none, TypeError for an option that it has not."""
    if kind == TRTLLM_JSON:
        return TrtllmJsonServer(source, **options)
    if kind == TRITON_GRPC:
        # Who reads pages only needs no gRPC.
        from collectors.serving.triton_grpc import TritonGrpcServer

        return TritonGrpcServer(source, **options)
    if kind in GATEWAYS:
        return GatewayServer(GATEWAYS[kind], source, **options)
    return EngineServer(ENGINES[kind], source, **options)
