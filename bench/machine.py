"""The machine of the agent's bench: 8 GPUs, each cut into 7 instances, 64 pods; driver and kubelet are stand-ins."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import grpc

from collectors.placement import podresources_pb2
from tests.nvml_shim.machine import GIB, h100, uuid

if TYPE_CHECKING:
    from pathlib import Path

BOARDS: Final = 8
INSTANCES: Final = 7
PODS: Final = 64
GPM_PERCENT: Final = {1: 71.0, 2: 64.5, 3: 33.0, 5: 21.0, 10: 48.0}


def mig_uuid(board: int, slot: int) -> str:
    """The UUID of an instance."""
    return f"MIG-{board:04x}{slot:04x}-0000-5000-8000-000000000000"


def facts() -> dict[str, object]:
    """The scenario of the driver's stand-in."""
    found: dict[str, object] = {"*.count": BOARDS, "*.driver": "550.127.08"}
    for board in range(BOARDS):
        found |= h100(board) | {f"{board}.{key}": value for key, value in _cut().items()}
        for slot in range(INSTANCES):
            found |= {f"{board}.mig{slot}.{key}": value for key, value in _instance(board, slot).items()}
    return found


def _cut() -> dict[str, object]:
    board: dict[str, object] = {"mig_mode": 1, "mig_pending": 1, "mig_max": 7, "util_gpu": "!3", "putil": "!3"}
    board |= {f"gpm{metric}": value for metric, value in GPM_PERCENT.items()}
    for slot in range(INSTANCES):
        board |= {f"gi{slot + 7}.gpm{metric}": value for metric, value in GPM_PERCENT.items()}
    return board


def _instance(board: int, slot: int) -> dict[str, object]:
    return {
        "uuid": mig_uuid(board, slot),
        "gi": slot + 7,
        "ci": 0,
        "attributes": f"16 1 1 {10 * 1024}",
        "mem_total": 10 * GIB,
        "mem_used": 6 * GIB,
    }


def scenario(path: Path) -> Path:
    """Write the scenario to a file."""
    path.write_text("".join(f"{key} {value}\n" for key, value in facts().items()), encoding="utf-8")
    return path


def kubelet(socket: Path) -> grpc.Server:
    """A kubelet that lists 64 pods on the 56 instances: the first eight are shared by two."""
    reply = podresources_pb2.ListPodResourcesResponse()
    ids = [mig_uuid(board, slot) for board in range(BOARDS) for slot in range(INSTANCES)]
    shared = PODS - len(ids)
    held = [f"{name}::{replica}" for name in ids[:shared] for replica in (0, 1)] + ids[shared:]
    for number, device_id in enumerate(held):
        pod = reply.pod_resources.add(name=f"llm-{number}", namespace=f"team-{number % 9}")
        devices = pod.containers.add(name="vllm").devices.add(resource_name="nvidia.com/mig-1g.10gb")
        devices.device_ids.append(device_id)
    allocatable = podresources_pb2.AllocatableResourcesResponse()
    allocatable.devices.add(resource_name="nvidia.com/mig-1g.10gb", device_ids=held)
    answers = {"List": reply.SerializeToString(), "GetAllocatableResources": allocatable.SerializeToString()}
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(lambda _, __, body=body: body) for name, body in answers.items()
    }
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", handlers),))
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    return server


__all__ = ["BOARDS", "INSTANCES", "PODS", "kubelet", "mig_uuid", "scenario", "uuid"]
