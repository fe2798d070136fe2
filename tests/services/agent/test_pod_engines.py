"""Model servers in pods: replicas on one node, pods that come and go, and gateways, as rows and as series."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import guard
from collectors.serving import triton_pb2 as messages
from collectors.serving.collector import EngineServer
from collectors.serving.engines import ENGINES, GATEWAYS
from collectors.serving.gateway import GatewayServer
from collectors.serving.triton_grpc import TritonGrpcServer
from exporters.node import NodePage
from fleet.agent_engine_config import AgentEngine
from fleet.catalogue_serving import GATEWAY_METRICS
from services.agent.engines import Engines, Watched
from services.agent.targets import GATEWAY_ROW_LIMIT, EngineReading, Target
from tests.collectors.serving.engines.pages_at_hand import page_of
from tests.collectors.serving.engines.test_triton_grpc import model
from tests.services.agent.test_engines import START, Kept

SERVER = "ml/llama"


def target(number: int, *, pod: str = "", kind: str = "vllm", began_second: int | None = None) -> Target:
    name = pod or f"llama-{number}"
    url = f"grpc://10.0.0.{number}:8001" if kind == "triton_grpc" else f"http://10.0.0.{number}:8000/metrics"
    engine = AgentEngine(kind, url, SERVER)
    return Target(f"pod:uid-{number}", f"pod:ml/{name}", engine, name, began_second)


def page(tokens: int, running: int = 1) -> str:
    labels = '{model_name="m",engine="0"}'
    return f"vllm:generation_tokens_total{labels} {tokens}\nvllm:num_requests_running{labels} {running}\n"


class Pod:
    """A pod with a vLLM server, visited as the agent does."""

    def __init__(self, engines: Engines, told: Target) -> None:
        self.watched: Watched = engines.watch(told)
        self._engines, self._server = engines, EngineServer(ENGINES["vllm"], server=SERVER)

    def visit(self, second: int, tokens: int, running: int = 1) -> None:
        reading = EngineReading(self._server.read(page(tokens, running)))
        self._engines.take(self.watched, guard.Visit("ok", 0.1, reading), START + second)

    def fail(self, second: int) -> None:
        self._engines.take(self.watched, guard.Visit("failed", 0.1, reason="refused"), START + second)

    def go(self, second: int) -> None:
        self._engines.leave(self.watched)
        self._engines.end(self.watched, START + second)


@pytest.fixture
def engines() -> Engines:
    return Engines("n1")


@pytest.fixture
def kept(engines: Engines) -> Kept:
    return Kept(engines)


def shown(engines: Engines, name: str) -> dict[str, float]:
    """The series of a metric of model servers by engine index."""
    metric = f"gputally_serving_{name}"
    return {m.labels[3]: m.value for m in engines.measurements() if m.metric.name == metric}


def test_replicas_on_one_node_share_neither_rows_nor_series(engines: Engines, kept: Kept) -> None:
    """Else the time of their windows would add up to twice a minute, and the most of one be the most of both."""
    replicas = [Pod(engines, target(number)) for number in (1, 2)]
    for second, running in ((0, 3), (30, 3), (60, 3), (75, 3)):
        for number, replica in enumerate(replicas, 1):
            replica.visit(second, number * second, running * number)
    assert shown(engines, "running_requests") == {"llama-1/0": 3, "llama-2/0": 6}
    NodePage(engines.measurements, strict=True).render()
    rows: Any = kept.rows["engine_window"]
    assert {
        (row.server, row.engine_index, row.window_ms, row.generation_tokens, row.running_max_requests) for row in rows
    } == {
        (SERVER, "llama-1/0", 60_000, 60, 3),
        (SERVER, "llama-2/0", 60_000, 120, 6),
    }


def test_a_page_without_engine_indices_has_the_name_of_its_pod(engines: Engines) -> None:
    one = Pod(engines, target(1))
    reading = EngineReading(one._server.read('vllm:num_requests_running{model_name="m"} 2\n'))
    engines.take(one.watched, guard.Visit("ok", 0.1, reading), START)
    assert shown(engines, "running_requests") == {"llama-1": 2}


def test_a_pod_that_goes_shows_nothing_and_its_rows_are_sent(engines: Engines, kept: Kept) -> None:
    one = Pod(engines, target(1))
    for second in (0, 15, 30):
        one.visit(second, 2 * second)
    engines.leave(one.watched)
    assert shown(engines, "generation_tokens_total") == {}
    one.visit(45, 90)
    assert kept.rows == {}, "a visit that was under way still counts"
    engines.end(one.watched, START + 45)
    engines.end(one.watched, START + 45)
    one.visit(130, 1_000)
    rows: Any = kept.rows["engine_window"]
    assert [(row.generation_tokens, row.window_ms) for row in rows] == [(90, 45_000)]
    engines.close(START + 60)
    assert len(kept.rows["engine_window"]) == 1


def test_counters_are_exact_over_a_replacement_by_a_pod_of_the_same_name(engines: Engines, kept: Kept) -> None:
    """A StatefulSet: the second pod has another uid. It began while the agent watched, so all that it shows counts."""
    first = Pod(engines, target(1, pod="llama-0"))
    first.visit(0, 1_000)
    first.visit(15, 1_100)
    second = Pod(engines, target(2, pod="llama-0", began_second=START + 20))
    first.go(30)
    second.fail(31)
    second.visit(50, 70)
    second.visit(65, 75)
    second.go(70)
    rows: Any = kept.rows["engine_window"]
    assert sum(row.generation_tokens for row in rows) == 100 + 75
    assert {row.engine_index for row in rows} == {"llama-0/0"}
    by_window: dict[int, int] = {}
    for row in rows:
        by_window[row.window_start_second] = by_window.get(row.window_start_second, 0) + row.window_ms
    assert by_window == {START: 15_000 + 40_000, START + 60: 5_000}, "no second counts twice"


def test_without_a_known_beginning_a_server_counts_from_its_first_page(engines: Engines, kept: Kept) -> None:
    one = Pod(engines, target(1))
    one.visit(0, 1_000_000)
    one.visit(15, 1_000_007)
    one.go(20)
    rows: Any = kept.rows["engine_window"]
    assert [row.generation_tokens for row in rows] == [7]


def test_work_since_the_beginning_is_spread_over_it_and_not_observed_where_nobody_looked(
    engines: Engines, kept: Kept
) -> None:
    """Loading a model takes minutes in which there is no page."""
    one = Pod(engines, target(1, began_second=START))
    for second in range(0, 180, 15):
        one.fail(second)
    one.visit(180, 180)
    one.go(180)
    rows: Any = kept.rows["engine_window"]
    assert [(row.window_start_second - START, row.generation_tokens) for row in rows] == [(0, 60), (60, 60), (120, 60)]
    assert {(row.window_ms, row.observed_ms) for row in rows} == {(60_000, 0)}


def test_of_a_whole_life_an_ensemble_has_no_row_as_in_any_step(engines: Engines, kept: Kept) -> None:
    """A row without requests or tokens would leave those of the whole server unknown for that hour."""
    watched = engines.watch(target(1, kind="triton_grpc", began_second=START))
    server = TritonGrpcServer("grpc://10.0.0.1:8001", server=SERVER)
    for second, finished in ((10, 100), (20, 130)):
        models = [model("ocr", finished, 0, {1: finished}), model("ensemble", finished, 0, {})]
        found = server.read(messages.ModelStatisticsResponse(model_stats=models), "page")
        assert {sample.model for sample in found.totals.samples} == {"ocr", "ensemble"}
        engines.take(watched, guard.Visit("ok", 0.1, EngineReading(found)), START + second)
    engines.end(watched, START + 20)
    rows: Any = kept.rows["engine_window"]
    assert [(row.model, row.finished_requests) for row in rows] == [("ocr", 130)]
    assert {row.model for row in kept.rows["engine_histogram"]} == {"ocr"}


def test_only_the_first_page_is_whole(engines: Engines, kept: Kept) -> None:
    """A server that is read anew, with nothing at hand of what was counted, has counted before."""
    one = Pod(engines, target(1, began_second=START))
    one.visit(10, 100)
    one._server = EngineServer(ENGINES["vllm"], server=SERVER)
    one.visit(20, 150)
    one.visit(30, 160)
    one.go(30)
    rows: Any = kept.rows["engine_window"]
    assert sum(row.generation_tokens for row in rows) == 100 + 10


def test_a_beginning_that_is_not_past_is_no_time_to_spread_over(engines: Engines, kept: Kept) -> None:
    one = Pod(engines, target(1, began_second=START + 500))
    one.visit(10, 100)
    one.go(10)
    rows: Any = kept.rows["engine_window"]
    assert [(row.generation_tokens, row.window_ms) for row in rows] == [(100, 0)]


@given(
    lives=st.lists(
        st.tuples(
            st.integers(min_value=0, max_value=90),
            st.lists(st.tuples(st.integers(1, 100), st.integers(0, 10**6)), min_size=1, max_size=6),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_tokens_of_pods_that_come_and_go_are_counted_once(lives: list[tuple[int, list[tuple[int, int]]]]) -> None:
    """Each life: how long until it begins, and visits (seconds since the last, tokens added)."""
    engines = Engines("n1")
    kept = Kept(engines)
    second, made = 0, 0
    for number, (pause, visits) in enumerate(lives, 1):
        second += pause
        one = Pod(engines, target(number, pod="llama-0", began_second=START + second))
        tokens = 0
        for passed, added in visits:
            second, tokens = second + passed, tokens + added
            one.visit(second, tokens)
        one.go(second)
        made += tokens
    rows: Any = kept.rows.get("engine_window", [])
    assert sum(row.generation_tokens for row in rows) == made
    assert sum(row.window_ms for row in rows) == 1000 * sum(passed for _, visits in lives for passed, _ in visits)


def gateway(engines: Engines, number: int, text: str, **told: Any) -> Watched:
    watched = engines.watch(target(number, kind="litellm"))
    server = GatewayServer(GATEWAYS["litellm"], server="gw/litellm", **told)
    for second in (0, 15):
        engines.take(watched, guard.Visit("ok", 0.1, EngineReading(server.read(text))), START + second)
    return watched


def test_a_gateway_is_shown_by_tenant_and_model_and_sends_no_rows(engines: Engines, kept: Kept) -> None:
    text = page_of("litellm/real_03_after.prom.gz")
    first, _ = (gateway(engines, number, text) for number in (1, 2))
    NodePage(engines.measurements, strict=True).render()
    measured = list(engines.measurements())
    assert {m.metric for m in measured} <= set(GATEWAY_METRICS)
    tokens = {m.labels: m.value for m in measured if m.metric.name == "gputally_gateway_prompt_tokens_total"}
    samples = GatewayServer(GATEWAYS["litellm"]).read(text).totals.samples
    wanted = {
        (row.tenant or "", row.model or ""): row.prompt_tokens for row in samples if row.prompt_tokens is not None
    }
    assert {labels[3:]: value for labels, value in tokens.items() if labels[2] == "llama-1"} == wanted
    assert {labels[:3] for labels in tokens} == {("gw/litellm", "litellm", f"llama-{n}") for n in (1, 2)}
    assert sum(tokens.values()) > 0
    engines.end(first, START + 20)
    engines.close(START + 20)
    assert kept.rows == {}
    assert list(engines.measurements()) == []


def test_tenants_beyond_the_bound_are_shown_together_and_nothing_is_lost(engines: Engines) -> None:
    lines = [
        f'litellm_input_tokens_metric_total{{requested_model="m",team="t{number}"}} {number}\n'
        for number in range(1_000)
    ]
    gateway(engines, 1, "".join([*lines, "litellm_in_flight_requests 1\n"]), row_limit=GATEWAY_ROW_LIMIT)
    found = {m.labels: m.value for m in engines.measurements() if m.metric.name.endswith("prompt_tokens_total")}
    assert len(found) == GATEWAY_ROW_LIMIT
    assert sum(found.values()) == sum(range(1_000))
