"""Pods with pages that come and go while an agent's threads run: who is visited, what is kept, and nothing hangs."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from collectors.guard import Guard
from collectors.runners import ThreadRunner
from collectors.samples import DeviceSample, Reading
from services.agent.asking import Asking
from services.agent.discovery import COLLECTOR, PodServers, PodVisits
from services.agent.engines import Engines
from services.agent.recorder import Recorder, RecorderSettings
from services.agent.runtime import Runtime
from tests.collectors.serving.kubernetes_api import NODE, Api, pod
from tests.collectors.serving.live_engine import LiveEngine, own_address
from tests.services.agent.test_discovery import asks
from tests.services.hub.hubs import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Boards:
    def collect(self) -> Reading:
        return Reading((DeviceSample(kind="gpu", uuid="GPU-1"),))

    def close(self) -> None:
        pass


class Node:
    """An agent's threads on a node: what they keep, and who is visited."""

    def __init__(self, api: Api) -> None:
        self.recorder = Recorder(RecorderSettings("n1"))
        self.rows: dict[str, list[Any]] = {}
        self.engines = Engines("n1")
        devices = Guard("nvml", ThreadRunner(Boards), deadline_seconds=5)
        self.runtime = Runtime(
            "n1", self.recorder, devices, (), period_seconds=1, save=self._save, ending=self.engines.close
        )
        told = asks(api, pod_period_seconds=1)
        listing = Guard(COLLECTOR, ThreadRunner(lambda: PodServers(told, NODE)), deadline_seconds=5)
        self.runtime.watch(Asking(listing, 0.1, PodVisits(self.engines, self.runtime).take))
        self.runtime.start()

    def _save(self, rows: Any) -> None:
        for table, more in (rows | self.engines.taken()[0]).items():
            self.rows.setdefault(table, []).extend(more)

    def outcomes(self) -> dict[str, str]:
        measured = [m for m in self.runtime.measurements() if m.metric.name == "gputally_collector_outcome_info"]
        return {m.labels[1]: m.labels[2] for m in measured if m.labels[1] != "nvml"}

    def tokens(self) -> dict[str, float]:
        metric = "gputally_serving_generation_tokens_total"
        return {m.labels[3]: m.value for m in self.engines.measurements() if m.metric.name == metric}


@pytest.fixture
def node(api: Api) -> Iterator[Node]:
    made = Node(api)
    yield made
    made.runtime.stop(5)


@pytest.fixture
def engine() -> Iterator[Callable[..., LiveEngine]]:
    started: list[LiveEngine] = []

    def start(**told: Any) -> LiveEngine:
        started.append(LiveEngine(host=own_address(), **told).__enter__())
        return started[-1]

    yield start
    for one in started:
        one.__exit__()


def of_page(number: int, page: LiveEngine) -> dict[str, Any]:
    return pod(number, ip=own_address(), port=str(page.port))


def test_pods_come_go_and_are_replaced_while_the_agent_runs(
    api: Api, node: Node, engine: Callable[..., LiveEngine]
) -> None:
    pages = [engine(), engine()]
    api.serve(of_page(1, pages[0]), of_page(2, pages[1]))
    wait_until(lambda: min(len(page.values) for page in pages) > 1, 20)
    wait_until(lambda: set(node.tokens()) >= {"pod-1/0", "pod-2/0"}, 5)
    assert node.outcomes() == {"kubernetes": "ok", "pod:ml/pod-1": "ok", "pod:ml/pod-2": "ok"}
    api.status = 503
    wait_until(lambda: node.outcomes()["kubernetes"] == "failed", 5)
    assert set(node.outcomes()) == {"kubernetes", "pod:ml/pod-1", "pod:ml/pod-2"}, "known pods are still there"
    newcomer = engine(begin=500)
    again = of_page(1, newcomer)
    again["metadata"]["uid"] = "uid-of-the-next"
    api.serve(again)
    api.status = 200
    wait_until(lambda: set(node.outcomes()) == {"kubernetes", "pod:ml/pod-1"}, 10)
    wait_until(lambda: node.tokens().get("pod-1/0", 0) >= 507, 10)
    wait_until(lambda: all(asking.join(0) for asking in node.runtime._leaving), 5)
    assert len(node.runtime._leaving) <= 2
    node.runtime.stop(5)
    rows = [row for row in node.rows["engine_window"] if row.engine_index.endswith("/0")]
    made = Counter[str]()
    for row in rows:
        made[row.engine_index] += row.generation_tokens
    assert made == {"pod-1/0": pages[0].generated + newcomer.generated, "pod-2/0": pages[1].generated}
    assert {row.server for row in rows} == {"ml/pod-1", "ml/pod-2"}


def test_a_page_that_hangs_holds_up_neither_listing_nor_its_own_end(
    api: Api, node: Node, engine: Callable[..., LiveEngine]
) -> None:
    stuck, well = engine(hang_seconds=30), engine()
    api.serve(of_page(1, stuck), of_page(2, well))
    wait_until(lambda: node.outcomes().get("pod:ml/pod-2") == "ok", 20)
    api.serve(of_page(2, well))
    wait_until(lambda: set(node.outcomes()) == {"kubernetes", "pod:ml/pod-2"}, 5)
    began = time.monotonic()
    node.runtime.stop(1)
    assert time.monotonic() - began < 4


def test_after_the_end_nobody_is_visited(api: Api, node: Node, engine: Callable[..., LiveEngine]) -> None:
    node.runtime.stop(5)
    page = engine()
    api.serve(of_page(1, page))
    (target,) = PodServers(asks(api), NODE).collect().targets
    asking = node.engines.asking(node.engines.watch(target))
    node.runtime.watch(asking)
    node.runtime.leave(asking)
    assert (asking.join(0), page.values) == (True, [])
