"""The whole agent as a process: a driver that hangs, loses a GPU or is not there, a hub that does not come back."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

import pytest

from bench.processes import family
from tests.collectors.kernel_records import record
from tests.collectors.kubelet import Kubelet, listing, pod
from tests.e2e import live_agents
from tests.e2e.live_agents import NOWHERE, matching
from tests.nvml_shim.machine import uuid
from tests.services.hub.hubs import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    """A kubelet; each of its pods holds one GPU."""
    server = Kubelet(tmp_path / "kubelet.sock").start()
    server.pods = listing(*(pod(f"train-{index}", ("nvidia.com/gpu", [uuid(index)])) for index in range(8)))
    yield server
    server.stop()


def xid(number: int, code: int = 31) -> str:
    """A record of the kernel about the first GPU."""
    return record(f"NVRM: Xid (PCI:0000:1b:00): {code}, pid=4242, name=python, Ch 00000008", seq=number)


def is_alive(path: Path) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return (path / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_dcgm_exporter_84_a_hung_driver_call_stops_nothing_else(
    tmp_path: Path, nvml_library: Callable[..., Path], kubelet: Kubelet
) -> None:
    """gpud#117, NVSentinel#1576, #1748: the page answers, the other sources are fresh, the driver is asked again."""
    node, env = live_agents.machine_of(8, tmp_path / "scenario.txt", nvml_library)
    log = tmp_path / "kern.log"
    log.touch()
    held = {uuid(index): f"train-{index}" for index in range(8)}
    with live_agents.running(tmp_path, env, kubelet_socket=kubelet.socket, kernel_log=log) as agent:
        wait_until(lambda: agent.holders() == held)
        node.change({"0.power_mw.sleep_ms": 7000})
        wait_until(lambda: agent.outcome("nvml") == "overdue")
        node.change({"0.power_mw.sleep_ms": None})
        with log.open("a") as lines:
            lines.write(xid(1, code=79))
        agent.wait_for("device_fault_events_total", uuid=uuid(0), code="79", seconds=5)
        assert agent.holders() == held
        page = agent.page()
        for collector, seconds in (("placement", 8), ("kernel_log", 4)):
            ((_, age),) = matching(page, "collector_staleness_seconds", collector=collector)
            assert age < seconds, collector
        agent.wait_for("collector_replaced_events_total", collector="nvml")
        wait_until(lambda: agent.outcome("nvml") == "ok")
        agent.wait_for("device_state_info", uuid=uuid(0), state="ok")
        assert agent.get("/healthz")[0] == 200
        node.change({"0.power_mw.sleep_ms": 600_000})
        wait_until(lambda: (agent.value("collector_visit_duration_seconds", collector="nvml") or 0) > 1)
        assert agent.slowest_page_seconds < 1
        workers = family(agent.process.pid)[1:]
        assert workers
        assert agent.stop(20) == 0
    wait_until(lambda: not any(is_alive(live_agents.PROC / str(worker)) for worker in workers), 10)


def test_dcgm_exporter_348_a_gpu_that_falls_off_the_bus_is_lost_and_still_held(
    tmp_path: Path, nvml_library: Callable[..., Path], kubelet: Kubelet
) -> None:
    """Fewer GPUs than there were are not the new normal, and the pod that holds the lost one goes on paying."""
    node, env = live_agents.machine_of(8, tmp_path / "scenario.txt", nvml_library)
    held = {uuid(index): f"train-{index}" for index in range(8)}
    with live_agents.running(tmp_path, env, kubelet_socket=kubelet.socket) as agent:
        wait_until(lambda: agent.holders() == held)
        assert agent.value("agent_seen_gpus") == 8
        node.change({"*.count": 7})
        agent.wait_for("device_state_info", uuid=uuid(7), state="lost")
        page = agent.page()
        assert [matching(page, f"agent_{name}_gpus")[0][1] for name in ("expected", "seen")] == [8, 7]
        assert {labels["uuid"] for labels, _ in matching(page, "device_state_info", state="ok")} == set(held) - {
            uuid(7)
        }
        assert not matching(page, "device_busy_ratio", uuid=uuid(7)), "the last reading is not the present"
        assert agent.holders() == held
        node.change({"*.count": 8})
        agent.wait_for("device_state_info", uuid=uuid(7), state="ok")
        assert agent.value("agent_seen_gpus") == 8


def test_a_node_without_a_driver_has_a_page_that_says_so(tmp_path: Path) -> None:
    with live_agents.running(tmp_path, {}) as agent:
        assert agent.outcome("nvml") == "absent"
        assert agent.value("agent_seen_gpus") == 0
        assert not any(name.startswith("device_") for name in agent.page())
        assert agent.get("/healthz")[0] == 200
        assert agent.stop() == 0


def test_an_agent_that_cannot_listen_says_so_and_ends(tmp_path: Path) -> None:
    """Two agents on one node would count everything twice; the second gets no port."""
    with live_agents.running(tmp_path, {}) as agent:
        (tmp_path / "second").mkdir()
        with pytest.raises(AssertionError, match=r"gputally-agent: .* in use"):
            live_agents.start(tmp_path / "second", {}, **{"page.listen": f"127.0.0.1:{agent.port}"})


@pytest.mark.slow
def test_a_hub_away_for_longer_than_the_spool_holds_is_counted_on_the_page(
    tmp_path: Path, nvml_library: Callable[..., Path]
) -> None:
    """dcgm-exporter#536, #702: the oldest batches go, the memory of the agent does not grow."""
    _, env = live_agents.machine_of(1, tmp_path / "scenario.txt", nvml_library)
    log = tmp_path / "kern.log"
    log.touch()
    settings = {"kernel_log": log, "hub.address": NOWHERE, "spool_mebibytes": 1}
    with live_agents.running(tmp_path, env, **settings) as agent, Flood(log):
        dropped = {"reason": "spool_full"}
        wait_until(lambda: (agent.value("push_dropped_batches_total", **dropped) or 0) >= 2)
        before = live_agents.resident_kibibytes(agent.process.pid)
        seen = agent.value("push_dropped_batches_total", **dropped) or 0
        wait_until(lambda: (agent.value("push_dropped_batches_total", **dropped) or 0) >= seen + 5)
        grown = live_agents.resident_kibibytes(agent.process.pid) - before
        assert grown < 6_000, f"{grown} KiB"
        assert (agent.value("push_spooled_bytes") or 0) <= 1 << 20
        assert (agent.value("push_oldest_batch_seconds") or 0) < 60
        assert agent.value("push_failed_events_total", reason="unavailable")
        assert agent.get("/healthz")[0] == 200


class Flood:
    """A kernel that complains two thousand times a second: each second of the agent is a batch of that."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        for number in itertools.count():
            if self._stopping.wait(0.1):
                return
            with self._log.open("a") as lines:
                lines.write("".join(xid(number * 200 + place) for place in range(200)))
