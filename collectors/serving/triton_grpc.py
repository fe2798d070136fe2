"""Triton's statistics by gRPC (`ModelStatistics`): the only place where it tells how long a device computed.

The counters of its metric page are times of requests, so a second of a batch of eight counts eight times; here each
execution of a batch counts once. An ensemble executes nothing itself and has no such times. Asked at `grpc://HOST:PORT`
or, with TLS, `grpcs://HOST:PORT`. What it says becomes series, so that steps and rows are made as for any page.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import grpc

from collectors.exposition import Page, PageError, Sample, Series, shown
from collectors.serving import triton_pb2 as messages
from collectors.serving.collector import Visit, server_name
from collectors.serving.deltas import Steps
from collectors.serving.mapping import EngineMapping, Signal, Source
from collectors.serving.page import PageReader
from collectors.serving.rows import Target, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_METHOD: Final = "/inference.GRPCInferenceService/ModelStatistics"
_REPLY_LIMIT_BYTES: Final = 16 * 1024 * 1024
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _REPLY_LIMIT_BYTES),
    ("grpc.enable_http_proxy", 0),
)
_NANOSECONDS: Final = 1_000_000_000
_PHASES: Final = ("compute_input", "compute_infer", "compute_output")

STATISTICS: Final = EngineMapping(
    kind="triton",
    signals=(
        Signal("requests_finished", (Source("triton_success_seconds_count"),)),
        Signal("requests_failed", (Source("triton_fail_seconds_count"),)),
        Signal("request_latency_seconds", (Source("triton_success_seconds"),)),
        Signal("queue_time_seconds", (Source("triton_queue_seconds"),)),
        Signal("engine_busy_seconds", (Source("triton_executed_seconds", by="phase"),)),
    ),
    required=("requests_finished",),
    model_labels=("model",),
)


class TritonGrpcServer:
    """The statistics of all models of one Triton server."""

    def __init__(
        self, source: str, *, token: str | None = None, server: str | None = None, timeout_seconds: float = 5
    ) -> None:
        self._source = source
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._server = server or server_name(source)
        self._timeout_seconds = timeout_seconds
        self._channel: Any = None
        self._at: str | None = None
        self._reader = PageReader(STATISTICS)
        self._steps = Steps(STATISTICS)

    def collect(self, source: str | None = None) -> Visit:
        """Ask the server. PageError when it does not answer or has no model."""
        place = source or self._source
        self._connect(place)
        call = self._channel.unary_unary(
            _METHOD,
            request_serializer=messages.ModelStatisticsRequest.SerializeToString,
            response_deserializer=messages.ModelStatisticsResponse.FromString,
        )
        try:
            answer = call(messages.ModelStatisticsRequest(), timeout=self._timeout_seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            # Its own text may hold anything; the code says what matters.
            raise PageError(f"{shown(place)}: did not answer ModelStatistics: {error.code().name}") from None
        return self.read(answer, shown(place), time.time_ns())

    def read(self, answer: messages.ModelStatisticsResponse, source: str, read_at_ns: int | None = None) -> Visit:
        """Return what an answer that is at hand says."""
        seen = self._reader.observe(Page(source, tuple(_samples(answer)), {}, read_at_ns))
        deltas = self._steps.advance(seen)
        target = Target(server=self._server)
        step = rows_of(STATISTICS, seen, target, deltas) if deltas else None
        return Visit(rows_of(STATISTICS, seen, target), step)

    def close(self) -> None:
        """Give the connection back; may be called twice."""
        if self._channel is not None:
            self._channel.close()
        self._channel = self._at = None

    def _connect(self, place: str) -> None:
        if place == self._at:
            return
        self.close()
        parts = urlsplit(place)
        if parts.scheme not in {"grpc", "grpcs"} or not parts.hostname or parts.username is not None:
            raise PageError("Triton's statistics are asked for at grpc://HOST:PORT (or grpcs:// with TLS)")
        if parts.scheme == "grpcs":
            self._channel = grpc.secure_channel(parts.netloc, grpc.ssl_channel_credentials(), options=_OPTIONS)
        elif self._metadata:
            raise PageError(f"{shown(place)}: a token is sent over TLS only (grpcs://)")
        else:
            self._channel = grpc.insecure_channel(parts.netloc, options=_OPTIONS)
        self._at = place


def _samples(answer: messages.ModelStatisticsResponse) -> Iterator[Sample]:
    """The answer as series; times in seconds."""
    for model in answer.model_stats:
        labels = {"model": model.name, "version": model.version}
        stats = model.inference_stats
        for word, found in (("success", stats.success), ("fail", stats.fail), ("queue", stats.queue)):
            yield Sample(Series(f"triton_{word}_seconds_count", labels), float(found.count))
            yield Sample(Series(f"triton_{word}_seconds_sum", labels), found.ns / _NANOSECONDS)
        if model.batch_stats:
            for phase in _PHASES:
                whole = sum(getattr(batch, phase).ns for batch in model.batch_stats)
                yield Sample(Series("triton_executed_seconds", labels | {"phase": phase}), whole / _NANOSECONDS)
