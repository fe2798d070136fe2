"""Triton's statistics from a real gRPC server that speaks its protocol."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from collectors.exposition import PageError
from collectors.serving import triton_pb2 as messages
from collectors.serving.servers import server_of
from collectors.serving.triton_grpc import TritonGrpcServer

if TYPE_CHECKING:
    from collections.abc import Iterator


def model(name: str, finished: int, failed: int, batches: dict[int, int], version: str = "1") -> Any:
    """A model that took 4 ms for each request, waited 1 ms of it, and computed 2 ms for each batch."""

    def taken(count: int, milliseconds: int) -> messages.StatisticDuration:
        return messages.StatisticDuration(count=count, ns=count * milliseconds * 1_000_000)

    return messages.ModelStatistics(
        name=name,
        version=version,
        inference_stats=messages.InferStatistics(
            success=taken(finished, 4), fail=taken(failed, 1), queue=taken(finished, 1)
        ),
        batch_stats=[
            messages.InferBatchStatistics(batch_size=size, compute_infer=taken(count, 2))
            for size, count in batches.items()
        ],
    )


class Statistics(grpc.GenericRpcHandler):
    """Answers with what it was told; without anything it refuses, with a text that must not be repeated."""

    def __init__(self) -> None:
        self.models: list[Any] = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if handler_call_details.method != "/inference.GRPCInferenceService/ModelStatistics":
            return None
        return grpc.unary_unary_rpc_method_handler(
            self.answer,
            request_deserializer=messages.ModelStatisticsRequest.FromString,
            response_serializer=messages.ModelStatisticsResponse.SerializeToString,
        )

    def answer(self, _: Any, context: grpc.ServicerContext) -> messages.ModelStatisticsResponse:
        if not self.models:
            context.abort(grpc.StatusCode.UNAVAILABLE, "s3cret text")
        return messages.ModelStatisticsResponse(model_stats=self.models)


@pytest.fixture
def triton() -> Iterator[tuple[str, Statistics]]:
    handler = Statistics()
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"grpc://127.0.0.1:{port}", handler
    server.stop(None).wait()


def test_time_of_a_batch_counts_once_and_an_ensemble_has_none(triton: tuple[str, Statistics]) -> None:
    """100 requests in 20 batches: 40 ms of a device, although the requests waited for 400 ms."""
    address, handler = triton
    handler.models = [model("ocr", 100, 3, {1: 10, 9: 10}), model("ensemble", 100, 3, {})]
    server = server_of("triton_grpc", address)
    (leaf, ensemble) = server.collect().totals.samples
    server.close()
    assert (leaf.engine, leaf.model, leaf.requests_finished, leaf.requests_failed) == ("triton", "ocr", 100, 3)
    assert leaf.engine_busy_seconds == {"compute_input": 0, "compute_infer": pytest.approx(0.04), "compute_output": 0}
    latency, queue = leaf.histograms["request_latency_seconds"], leaf.histograms["queue_time_seconds"]
    assert (latency.bounds, latency.sum, latency.count) == ((), pytest.approx(0.4), 100)
    assert (queue.sum, queue.count) == (pytest.approx(0.1), 100)
    assert (ensemble.model, ensemble.engine_busy_seconds) == ("ensemble", None)
    assert (ensemble.requests_finished, ensemble.quality) == (None, ("partial",)), "those of its steps"


def test_versions_of_a_model_are_one_row_and_steps_know_restarts(triton: tuple[str, Statistics]) -> None:
    address, handler = triton
    server = server_of("triton_grpc", address)
    handler.models = [model("ocr", 100, 0, {1: 100}, "1"), model("ocr", 50, 0, {1: 50}, "2")]
    first = server.collect()
    assert ([sample.requests_finished for sample in first.totals.samples], first.step) == ([150], None)
    handler.models = [model("ocr", 110, 0, {1: 110}, "1"), model("ocr", 7, 0, {1: 7}, "2")]
    step = server.collect().step
    server.close()
    assert step is not None
    (sample,) = step.samples
    assert (sample.requests_finished, sample.quality) == (10 + 7, ("reset",))
    assert sample.engine_busy_seconds is not None
    assert sample.engine_busy_seconds["compute_infer"] == pytest.approx(0.034)


def test_a_step_over_a_restart_of_the_reader(triton: tuple[str, Statistics]) -> None:
    address, handler = triton
    handler.models = [model("ocr", 100, 0, {1: 100})]
    counted = server_of("triton_grpc", address).collect().counted
    handler.models = [model("ocr", 130, 0, {1: 130})]
    visit = server_of("triton_grpc", address, saved=counted).collect()
    assert visit.step is not None
    assert [sample.requests_finished for sample in visit.step.samples] == [30]
    assert server_of("triton_grpc", "grpc://other:1", saved=counted).counted is None


def test_a_server_that_refuses_is_one_line_without_its_text(triton: tuple[str, Statistics]) -> None:
    address, _ = triton
    with pytest.raises(PageError) as caught:
        server_of("triton_grpc", address).collect()
    assert str(caught.value) == f"{address}: did not answer ModelStatistics: UNAVAILABLE"


@pytest.mark.parametrize("place", ["127.0.0.1:8001", "http://127.0.0.1:8001", "grpc://", "grpc://u:p@h:1"])
def test_an_address_that_is_none(place: str) -> None:
    with pytest.raises(PageError, match="are asked for at grpc://HOST:PORT"):
        TritonGrpcServer(place).collect()


def test_a_token_is_never_sent_in_clear(triton: tuple[str, Statistics]) -> None:
    with pytest.raises(PageError, match="over TLS only"):
        TritonGrpcServer(triton[0], token="s3cret").collect()
