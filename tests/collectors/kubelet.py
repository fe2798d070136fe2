"""A kubelet as its clients see it: a real gRPC server on a unix socket that answers with what it is told to."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc

from collectors.placement import podresources_pb2 as messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

Refusal = grpc.StatusCode


def wire_field(number: int, payload: bytes | int) -> bytes:
    """One field of a message as it travels: bytes with their length, or a number."""
    if isinstance(payload, int):
        return _varint(number << 3) + _varint(payload)
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def pod(name: str, *devices: tuple[str, Iterable[str]], namespace: str = "ml", container: str = "main") -> Any:
    """A pod with one container and (resource, ids) for it."""
    return messages.PodResources(
        name=name,
        namespace=namespace,
        containers=[
            messages.ContainerResources(
                name=container,
                devices=[messages.ContainerDevices(resource_name=r, device_ids=list(ids)) for r, ids in devices],
            )
        ],
    )


def listing(*pods: Any) -> bytes:
    return messages.ListPodResourcesResponse(pod_resources=pods).SerializeToString()


def allocatable(*devices: tuple[str, Iterable[str]]) -> bytes:
    return messages.AllocatableResourcesResponse(
        devices=[messages.ContainerDevices(resource_name=r, device_ids=list(ids)) for r, ids in devices]
    ).SerializeToString()


class Kubelet:
    """Serves on `socket`. `pods` and `allocatable` are answers, or the status with which it refuses."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.pods: bytes | Refusal = b""
        self.allocatable: bytes | Refusal = b""
        self.asked: list[str] = []
        self.authorities: set[str] = set()
        self.hangs = False
        self.released = threading.Event()
        self._server: grpc.Server | None = None

    def start(self) -> Kubelet:
        handlers = {
            "List": grpc.unary_unary_rpc_method_handler(self._answering("List", lambda: self.pods)),
            "GetAllocatableResources": grpc.unary_unary_rpc_method_handler(
                self._answering("GetAllocatableResources", lambda: self.allocatable)
            ),
        }
        self._server = grpc.server(
            ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", 64 << 20), ("grpc.so_reuseport", 0)]
        )
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1.PodResourcesLister", handlers)])
        self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()
        return self

    def stop(self) -> None:
        self.released.set()
        if self._server:
            self._server.stop(0).wait()
        self.socket.unlink(missing_ok=True)

    def _answering(self, method: str, answer: Callable[[], bytes | Refusal]) -> Callable[[bytes, Any], bytes]:
        def respond(request: bytes, context: Any) -> bytes:
            assert request == b""
            self.asked.append(method)
            self.authorities.add(context._rpc_event.call_details.host.decode())
            if self.hangs:
                self.released.wait(30)
            found = answer()
            if isinstance(found, Refusal):
                context.abort(found, "as told")
            return found

        return respond


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
