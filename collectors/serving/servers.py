"""Every kind of model server and gateway that can be read, and the one that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from fleet.serving_kinds import GATEWAY_KINDS, SERVER_KINDS, TRITON_GRPC, TRTLLM_JSON

if TYPE_CHECKING:
    from collectors.serving.collector import EngineServer
    from collectors.serving.gateway import GatewayServer
    from collectors.serving.triton_grpc import TritonGrpcServer
    from collectors.serving.trtllm_json import TrtllmJsonServer

    Server: TypeAlias = EngineServer | GatewayServer | TritonGrpcServer | TrtllmJsonServer

__all__ = ["SERVER_KINDS", "server_of"]


# Each is imported when one is made: who reads pages only needs no gRPC, and who finds no server needs no mapping.
def server_of(kind: str, source: str, **options: Any) -> Server:
    """What reads a server of a kind; KeyError for a kind that is none, TypeError for an option that it has not."""
    if kind == TRTLLM_JSON:
        from collectors.serving.trtllm_json import TrtllmJsonServer

        return TrtllmJsonServer(source, **options)
    if kind == TRITON_GRPC:
        from collectors.serving.triton_grpc import TritonGrpcServer

        return TritonGrpcServer(source, **options)
    if kind in GATEWAY_KINDS:
        from collectors.serving.engines import GATEWAYS
        from collectors.serving.gateway import GatewayServer

        return GatewayServer(GATEWAYS[kind], source, **options)
    from collectors.serving.collector import EngineServer
    from collectors.serving.engines import ENGINES

    return EngineServer(ENGINES[kind], source, **options)
