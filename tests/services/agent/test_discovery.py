"""Model servers in pods, found while an agent runs: a real API over TLS, and pods with pages that come and go."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from collectors.collector import SourceAbsentError
from collectors.exposition import PageError
from fleet.agent_engine_config import MOST_ENGINES, AgentEngine, AgentKubernetes
from fleet.errors import ConfigError
from services.agent.discovery import PodServers, kubernetes_of
from tests.collectors.serving.kubernetes_api import NODE, Api, pod

if TYPE_CHECKING:
    from pathlib import Path

    from services.agent.discovery import PodReading


def asks(api: Api, **told: Any) -> AgentKubernetes:
    return AgentKubernetes(True, api=api.address, ca=str(api.ca), token_file=str(api.token_file), **told)


def refused(found: PodReading) -> dict[str, int]:
    return {rejected.reason: rejected.count for rejected in found.rejected}


def names(found: PodReading) -> list[str]:
    return [target.collector for target in found.targets]


def numbered(*numbers: int) -> list[dict[str, Any]]:
    """Pods with an address each."""
    return [pod(number, ip=f"10.244.{number // 200}.{number % 200 + 1}") for number in numbers]


def test_pods_that_are_found_keep_their_counters_while_they_are_listed(api: Api) -> None:
    servers = PodServers(asks(api), NODE)
    api.serve(*numbered(1, 2))
    first = servers.collect().targets
    api.serve(*numbered(2, 3))
    second = servers.collect().targets
    assert [target.collector for target in first] == ["pod:ml/pod-1", "pod:ml/pod-2"]
    assert second[1] is first[1]
    assert names(servers.collect()) == ["pod:ml/pod-2", "pod:ml/pod-3"], "twice missing is gone"


def test_a_pod_that_is_missed_once_is_still_there(api: Api) -> None:
    """The API's answers come from caches, and one may be older than the one before."""
    servers = PodServers(asks(api), NODE)
    api.serve(*numbered(1, 2))
    (kept, _) = servers.collect().targets
    for listed in ([2], [1, 2], [2], [1, 2]):
        api.serve(*numbered(*listed))
        assert servers.collect().targets[0] is kept


def test_a_pod_whose_name_another_has_is_gone_at_once(api: Api) -> None:
    servers = PodServers(asks(api), NODE)
    api.serve(pod(1))
    (first,) = servers.collect().targets
    again = pod(1)
    again["metadata"]["uid"] = "uid-of-the-next"
    api.serve(again)
    (second,) = servers.collect().targets
    assert (second.collector, second.pod) == (first.collector, first.pod)
    assert second.key != first.key


def test_a_pod_that_says_something_else_is_another_target(api: Api) -> None:
    servers = PodServers(asks(api), NODE)
    api.serve(pod(1))
    (first,) = servers.collect().targets
    api.serve(pod(1, port="9000"))
    (second,) = servers.collect().targets
    assert (second.key, second.engine.url) == (first.key, "http://10.244.0.9:9000/metrics")
    api.serve(pod(1, port="x"))
    servers.collect()
    found = servers.collect()
    assert (found.targets, refused(found)) == ((), {"bad_port": 1})


def test_a_list_that_is_cut_off_says_nothing_of_who_is_gone(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collectors.serving.discovery.POD_LIMIT", 2)
    servers = PodServers(asks(api), NODE)
    api.serve(*numbered(1, 2))
    assert names(servers.collect()) == ["pod:ml/pod-1", "pod:ml/pod-2"]
    api.serve(*numbered(3, 4, 5))
    for _ in range(3):
        found = servers.collect()
        assert names(found) == [f"pod:ml/pod-{number}" for number in range(1, 5)]
        assert refused(found) == {"too_many_pods": 1}


def test_servers_beyond_the_bound_are_counted_and_those_that_are_visited_keep_their_place(api: Api) -> None:
    configured = [AgentEngine("vllm", "http://10.9.9.9:8000/metrics")]
    servers = PodServers(asks(api), NODE, configured)
    api.serve(*numbered(*range(50, 150)))
    found = servers.collect()
    assert (len(found.targets), refused(found)) == (MOST_ENGINES - 1, {"too_many_engines": 100 - MOST_ENGINES + 1})
    api.serve(*numbered(*range(150)))
    assert servers.collect().targets == found.targets
    api.serve(*numbered(7, *range(51, 150)))
    servers.collect()
    assert len(servers.collect().targets) == MOST_ENGINES - 1


def test_one_address_is_visited_once(api: Api) -> None:
    """Of two pods in the host's network one has the port; a configured server is not counted twice."""
    configured = [AgentEngine("vllm", "http://10.244.0.1:8000/other")]
    servers = PodServers(asks(api), NODE, configured)
    api.serve(
        pod(0, ip="10.244.0.1"), pod(1, ip="10.244.0.9"), pod(2, ip="10.244.0.9"), pod(3, port="80", ip="10.244.0.9")
    )
    found = servers.collect()
    assert names(found) == ["pod:ml/pod-1", "pod:ml/pod-3"]
    assert refused(found) == {"same_address": 2}
    api.serve(pod(2))
    servers.collect()
    assert names(servers.collect()) == ["pod:ml/pod-2"], "its turn has come"


def test_a_beginning_counts_only_if_it_was_after_the_listing_before(api: Api) -> None:
    servers = PodServers(asks(api), NODE)
    moment = int(time.time())

    def began(number: int, second: int) -> dict[str, Any]:
        (found,) = numbered(number)
        text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
        found["status"]["containerStatuses"] = [{"state": {"running": {"startedAt": text}}}]
        return found

    def told() -> dict[str, int | None]:
        return {target.pod: target.began_second for target in servers.collect().targets}

    api.serve(began(1, moment + 60))
    assert told() == {"pod-1": None}, "who knows since when it was there"
    api.serve(began(1, moment + 60), began(2, moment + 90), began(3, moment - 90))
    assert told() == {"pod-1": None, "pod-2": moment + 90, "pod-3": None}
    api.serve(began(1, moment + 60), began(2, moment + 300), began(3, moment + 300))
    assert told() == {"pod-1": None, "pod-2": moment + 90, "pod-3": None}, "a container that starts again"


def test_what_the_api_refuses_is_one_line_and_a_token_that_is_replaced_is_read(api: Api) -> None:
    servers = PodServers(asks(api), NODE)
    api.status = 403
    with pytest.raises(PageError, match="HTTP 403 Forbidden") as error:
        servers.collect()
    assert "s3cret" not in str(error.value)
    api.status = 200
    api.token_file.write_text("renewed\n")
    api.serve(pod(1))
    assert names(servers.collect()) == ["pod:ml/pod-1"]
    assert api.tokens == ["Bearer s3cret", "Bearer renewed"]


def test_where_the_api_is(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsentError):
        kubernetes_of(AgentKubernetes(True), NODE, {})
    environment = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    own = kubernetes_of(AgentKubernetes(True), NODE, environment)
    assert (own.node, own.api, own.token_file is not None) == (NODE, "https://10.96.0.1:443", True)
    told = AgentKubernetes(True, node="other", ca="/ca", token_file="/t")
    mixed = kubernetes_of(told, NODE, environment)
    assert (mixed.node, mixed.api, str(mixed.ca), str(mixed.token_file)) == ("other", own.api, "/ca", "/t")
    elsewhere = kubernetes_of(AgentKubernetes(True, api="http://127.0.0.1:8001"), NODE, environment)
    assert (elsewhere.api, elsewhere.ca, elsewhere.token_file) == ("http://127.0.0.1:8001", None, None)
    with pytest.raises(ConfigError, match="is not the name of a node"):
        kubernetes_of(AgentKubernetes(True), "GPU_1", environment)


def test_a_node_without_model_servers_holds_no_mapping_in_memory() -> None:
    code = """
import sys, time
from fleet.agent_config import Agent
from fleet.agent_engine_config import AgentKubernetes
from services.agent.assembly import NodeAgent
told = AgentKubernetes(discover=True, api="http://127.0.0.1:9")
agent = NodeAgent(Agent(kubelet_socket="", kernel_log="", processes=False, kubernetes=told), "n1", "boot", "1")
guard = agent._runtime._asked[0].guard
assert guard.visit().outcome == "failed", guard.status()
print([name for name in sys.modules if name.startswith("collectors.serving.engines")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
