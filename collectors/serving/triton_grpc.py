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
from collectors.serving.counters import Counted, place_of
from collectors.serving.deltas import Steps
from collectors.serving.mapping import EngineMapping, Signal, Source
from collectors.serving.page import PageReader
from collectors.serving.rows import Target, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from collectors.http_get import Tls

_METHOD: Final = "/inference.GRPCInferenceService/ModelStatistics"
_REPLY_LIMIT_BYTES: Final = 16 * 1024 * 1024
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _REPLY_LIMIT_BYTES),
    ("grpc.enable_http_proxy", 0),
)
_PEM_LIMIT_BYTES: Final = 4 * 1024 * 1024
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
    leaf_names=("triton_executed_",),
)


class TritonGrpcServer:
    """The statistics of all models of one Triton server."""

    def __init__(
        self,
        source: str,
        *,
        token: str | None = None,
        tls: Tls | None = None,
        server: str | None = None,
        timeout_seconds: float = 5,
        saved: Counted | None = None,
    ) -> None:
        self._source = source
        self._tls = tls
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._server = server or server_name(source)
        self._timeout_seconds = timeout_seconds
        self._channel: Any = None
        self._at: str | None = None
        self._reader = PageReader(STATISTICS)
        self._of = place_of(STATISTICS.kind, source)
        self._steps = Steps(STATISTICS, saved if saved and saved.of == self._of else None)

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
            # Certificates may have been replaced: the next visit connects anew.
            self.close()
            raise PageError(f"{shown(place)}: did not answer ModelStatistics: {_why(error)}") from None
        return self.read(answer, shown(place), time.time_ns())

    def read(self, answer: messages.ModelStatisticsResponse, source: str, read_at_ns: int | None = None) -> Visit:
        """Return what an answer that is at hand says."""
        seen = self._reader.observe(Page(source, tuple(_samples(answer)), {}, read_at_ns))
        deltas = self._steps.advance(seen)
        target = Target(server=self._server)
        step = rows_of(STATISTICS, seen, target, deltas) if deltas else None
        return Visit(rows_of(STATISTICS, seen, target), step, self.counted)

    @property
    def counted(self) -> Counted | None:
        """As that of `EngineServer`."""
        return self._steps.counted(self._of)

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
            self._channel = grpc.secure_channel(parts.netloc, _credentials(self._tls), options=_OPTIONS)
        elif self._metadata:
            raise PageError(f"{shown(place)}: a token is sent over TLS only (grpcs://)")
        elif self._tls:
            raise PageError(f"{shown(place)}: certificates are for grpcs addresses")
        else:
            self._channel = grpc.insecure_channel(parts.netloc, options=_OPTIONS)
        self._at = place


def _credentials(tls: Tls | None) -> Any:
    """What the files hold now. PageError for one that cannot be read or holds no PEM; its content is never shown."""
    if tls is None:
        return grpc.ssl_channel_credentials()
    own = (None, None) if tls.certificate is None else (tls.key or tls.certificate, tls.certificate)
    return grpc.ssl_channel_credentials(*(_pem(file) for file in (tls.ca, *own)))


def _pem(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        with file.open("rb") as opened:
            text = opened.read(_PEM_LIMIT_BYTES + 1)
    except OSError as error:
        raise PageError(f"{shown(str(file))}: {error.strerror or 'cannot be read'}") from None
    if b"-----BEGIN " not in text or len(text) > _PEM_LIMIT_BYTES:
        # gRPC would only log it, and refuse each connection without a word of why.
        raise PageError(f"{shown(str(file))}: holds nothing in PEM")
    return text


def _why(error: Any) -> str:
    """The code of an error. Its own text may hold anything, so it is only searched for words of TLS, never shown."""
    name, text = str(error.code().name), error.details() or ""
    if name == "UNAVAILABLE" and "CERTIFICATE_VERIFY_FAILED" in text:
        return f"{name}, its certificate is not trusted"
    return f"{name}, TLS failed" if name == "UNAVAILABLE" and "handshake" in text.lower() else name


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
