"""The kubelet's PodResources API v1 over its unix socket, as far as gputally asks it.

    with PodResources(Path("/var/lib/kubelet/pod-resources/kubelet.sock")) as kubelet:
        kubelet.pods()

Whoever connects must have the right to write to the socket, which is root's as a rule; a read-only mount of its folder
is no hindrance.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, Final

import grpc

from collectors.collector import SourceAbsentError
from collectors.placement import podresources_pb2 as messages
from fleet.errors import GputallyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

_REPLY_LIMIT_BYTES: Final = 16 * 1024 * 1024
# Without the authority, some kubelets and proxies refuse the socket's path as a host name (grpc#38142, #34305).
# A kubelet that restarts is back within seconds, so the pause between attempts stays below that.
_OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", _REPLY_LIMIT_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.enable_http_proxy", 0),
)
_SERVICE: Final = "/v1.PodResourcesLister/"


class KubeletError(GputallyError):
    """The kubelet did not answer, or refused (it allows few questions a second to all who ask)."""


class KubeletOlderError(KubeletError):
    """The kubelet does not know the question."""


class PodResources:
    """A connection to the kubelet, kept between questions and made anew when the socket was replaced."""

    def __init__(self, socket_path: Path, *, timeout_seconds: float = 5) -> None:
        """Connects at the first question."""
        self._path = socket_path
        self._timeout_seconds = timeout_seconds
        self._channel: Any = None
        self._socket: tuple[int, int] | None = None
        self._calls: dict[str, Callable[..., Any]] = {}

    def __enter__(self) -> PodResources:
        """The connection itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Closes it."""
        self.close()

    def pods(self) -> messages.ListPodResourcesResponse:
        """Every pod and what it was given. KubeletError, or SourceAbsentError where there is no socket."""
        request, kind = messages.ListPodResourcesRequest(), messages.ListPodResourcesResponse
        answer: messages.ListPodResourcesResponse = self._ask("List", request, kind)
        return answer

    def allocatable(self) -> messages.AllocatableResourcesResponse:
        """All that could be given, unhealthy devices included (kubernetes#104122)."""
        request, kind = messages.AllocatableResourcesRequest(), messages.AllocatableResourcesResponse
        answer: messages.AllocatableResourcesResponse = self._ask("GetAllocatableResources", request, kind)
        return answer

    def close(self) -> None:
        """Give the connection back; the next question makes a new one."""
        if self._channel is not None:
            self._channel.close()
        self._channel = None
        self._calls = {}

    def _ask(self, method: str, request: Any, kind: Any) -> Any:
        self._connect()
        call = self._calls.get(method)
        if call is None:
            call = self._calls[method] = self._channel.unary_unary(
                _SERVICE + method,
                request_serializer=type(request).SerializeToString,
                response_deserializer=kind.FromString,
            )
        try:
            return call(request, timeout=self._timeout_seconds)
        except grpc.RpcError as error:
            code = error.code()
            if code is grpc.StatusCode.UNIMPLEMENTED:
                raise KubeletOlderError(f"this kubelet does not offer {method}") from None
            # Its own text may hold anything; the code says what matters.
            raise KubeletError(f"the kubelet did not answer {method}: {code.name}") from None

    def _connect(self) -> None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - one call a second; a Path of the same costs more
        except OSError as error:
            self.close()
            raise SourceAbsentError(f"no kubelet at {self._path}: {error.strerror}") from None
        if not stat.S_ISSOCK(found.st_mode):
            raise SourceAbsentError(f"no kubelet at {self._path}: not a socket")
        socket = (found.st_dev, found.st_ino)
        if self._channel is None or socket != self._socket:
            self.close()
            self._channel = grpc.insecure_channel(f"unix:{self._path}", options=_OPTIONS)
            self._socket = socket
