"""A small hub: a real gRPC server that stores batches in memory and answers as a test tells it to."""

from __future__ import annotations

import threading
import time
from concurrent import futures
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc

from exporters import ingest_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Answer = ingest_pb2.Answer
Key = tuple[str, str, int]
SILENT = -1


def until(is_so: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Wait for something to become true, and fail the test if it does not."""
    deadline = time.monotonic() + seconds
    while not (found := is_so()):
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)
    return found


def stored(batch: ingest_pb2.Batch) -> tuple[int, str]:
    """What a hub that is well says to every batch."""
    return Answer.STORED, ""


@dataclass
class Hub:
    """`judge` tells outcome and reason for a batch; SILENT gives no answer."""

    judge: Callable[[ingest_pb2.Batch], tuple[int, str]] = stored
    credentials: grpc.ServerCredentials | None = None
    token: str | None = None
    times_said: int = 1
    is_reading: threading.Event = field(default_factory=threading.Event)
    received: list[ingest_pb2.Batch] = field(default_factory=list)
    stored: dict[Key, ingest_pb2.Batch] = field(default_factory=dict)
    metadata: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    def start(self) -> Hub:
        self.is_reading.set()
        self.server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        handler = grpc.stream_stream_rpc_method_handler(
            self._push, ingest_pb2.Batch.FromString, Answer.SerializeToString
        )
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("gputally.ingest.v1.Ingest", {"Push": handler}),)
        )
        address = f"127.0.0.1:{self.port}"
        if self.credentials is None:
            self.port = self.server.add_insecure_port(address)
        else:
            self.port = self.server.add_secure_port(address, self.credentials)
        self.server.start()
        return self

    def stop(self) -> None:
        self.server.stop(None).wait(10)

    def sequences(self) -> list[int]:
        return [batch.sequence for batch in self.received]

    def _push(self, requests: Iterator[ingest_pb2.Batch], context: grpc.ServicerContext) -> Iterator[Answer]:
        said = {key: str(value) for key, value in context.invocation_metadata()}
        self.metadata.append(said)
        if self.token is not None and said.get("authorization") != f"Bearer {self.token}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")
        for batch in requests:
            self.is_reading.wait()
            self.received.append(batch)
            outcome, reason = self.judge(batch)
            if outcome == SILENT:
                continue
            if outcome == Answer.STORED:
                self.stored.setdefault((batch.boot_id, batch.spool_id, batch.sequence), batch)
            for _ in range(self.times_said):
                yield Answer(
                    boot_id=batch.boot_id,
                    spool_id=batch.spool_id,
                    sequence=batch.sequence,
                    outcome=outcome,
                    reason=reason,
                )
