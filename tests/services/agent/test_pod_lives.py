"""Pods with model servers over the lives of agents: those that stay are counted on, those that went are sent once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collectors.guard import Visit
from collectors.serving.pods import FoundServer
from fleet.agent_engine_config import AgentKubernetes
from services.agent.discovery import PodReading, PodVisits
from services.agent.targets import Target, in_pod
from tests.services.agent.engine_lives import MINUTE, T0, Life, Spooled

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool.sqlite"


def pod(number: int, name: str = "llama-0") -> Target:
    url = "http://10.0.0.7:8000/metrics" if name == "llama-0" else f"http://10.0.0.{number}:8000/metrics"
    found = FoundServer("vllm", url, "ml/llama", f"ml/{name}", f"uid-{number}")
    return in_pod(found, AgentKubernetes(discover=True, api="https://127.0.0.1:9"))


def listed(life: Life, *targets: Target) -> PodVisits:
    """The pods of a first listing are visited."""
    visits = PodVisits(life.engines, life._runtime)
    list_again(visits, *targets)
    return visits


def list_again(visits: PodVisits, *targets: Target) -> None:
    visits.take(Visit("ok", 0.1, PodReading(targets, ())))


def test_a_pod_that_was_replaced_meanwhile_is_another_one_at_the_same_address(spool: Path) -> None:
    """Its predecessor's windows are sent when two listings lack it, once; its counters are of no use to anybody."""
    life = Life(spool, discover=True)
    listed(life, pod(1), pod(2, "llama-1"))
    for second, tokens in ((0, 1_000), (30, 1_030)):
        life.visit(T0 + second, tokens, "pod:uid-1")
        life.visit(T0 + second, tokens, "pod:uid-2")
    life.save()
    life.drop()
    life = Life(spool, discover=True)
    there = pod(3), pod(2, "llama-1")
    visits = listed(life, *there)
    for second, tokens in ((90, 2_000), (100, 2_007)):
        life.visit(T0 + second, tokens, "pod:uid-3")
        life.visit(T0 + second, tokens, "pod:uid-2")
    life.save(MINUTE)
    assert set(life.engines.taken()[1]) == {"pod:uid-1", "pod:uid-2", "pod:uid-3"}, "it may only be missing there"
    list_again(visits, *there)
    life.save(MINUTE)
    list_again(visits, *there)
    life.stop_at(T0 + 100)
    found = Spooled(spool)
    by_pod = dict.fromkeys(("llama-0/0", "llama-1/0"), 0)
    for row in found.rows:
        by_pod[row["engine_index"]] += row["generation_tokens"]
    assert by_pod == {"llama-0/0": 30 + 7, "llama-1/0": 1_007}
    assert set(found.state["servers"]) == {"pod:uid-2", "pod:uid-3"}


def test_a_pod_that_comes_back_before_it_was_missed_twice_goes_on(spool: Path) -> None:
    life = Life(spool, discover=True)
    listed(life, pod(1))
    life.visit(T0, 100, "pod:uid-1")
    life.save()
    life.drop()
    life = Life(spool, discover=True)
    visits = listed(life)
    life.save(MINUTE)
    list_again(visits, pod(1))
    life.visit(T0 + 50, 150, "pod:uid-1")
    life.stop_at(T0 + 50)
    assert Spooled(spool).tokens == 50


def test_a_pod_that_was_going_when_the_agent_was_killed_is_sent_once(spool: Path) -> None:
    """Its last visit was under way. One of the same uid, that says something else of itself, is visited already."""
    life = Life(spool, discover=True)
    listed(life, pod(1))
    for second, tokens in ((0, 100), (30, 130)):
        life.visit(T0 + second, tokens, "pod:uid-1")
    life.engines.leave(life.watched.pop("pod:uid-1"))
    life.engines.watch(pod(1, "llama-1"))
    life.save(MINUTE)
    life.drop()
    for _ in range(2):
        Life(spool, discover=True).drop()
    later = Life(spool, discover=True)
    later.save(MINUTE)
    later.drop()
    assert Spooled(spool).tokens == 30


def test_a_pod_that_is_gone_leaves_its_rows_and_no_state(spool: Path) -> None:
    life = Life(spool, discover=True)
    listed(life, pod(1))
    for second, tokens in ((0, 100), (30, 130)):
        life.visit(T0 + second, tokens, "pod:uid-1")
    life.engines.leave(life.watched["pod:uid-1"])
    life.engines.end(life.watched["pod:uid-1"], T0 + 30)
    life.stop_at(T0 + 40)
    found = Spooled(spool)
    assert (found.tokens, found.state["servers"]) == (30, {})
