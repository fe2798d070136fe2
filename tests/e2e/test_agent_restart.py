"""One agent's day: it starts without a hub, stops, starts again, sees its kubelet come and go, and delivers it all."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from bench.processes import family
from tests.collectors.kubelet import Kubelet, listing, pod
from tests.e2e import live_agents
from tests.e2e.live_agents import NOWHERE, PROC, saved_state, spooled
from tests.nvml_shim.machine import uuid
from tests.services.hub import hubs
from tests.services.hub.hubs import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.e2e.live_agents import LiveAgent
    from tests.nvml_shim.machine import Machine

pytestmark = pytest.mark.slow
WATTS = 400
HEAVY = "duckdb|duckdb_extensions|numpy|pandas|pyarrow|streamlit|store|rich|click"
HELD = {uuid(0): "train-0", uuid(1): "train-1"}


class Meter:
    """The energy meter of the first GPU; it runs with the clock from `start` on, whoever looks."""

    def __init__(self, machine: Machine) -> None:
        self.begin_mj = 1_000_000_000
        self._machine = machine
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        machine.change({"0.energy_mj": self.begin_mj})

    def start(self) -> None:
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stopping.wait(0.1):
            added_mj = round((time.monotonic() - began) * WATTS * 1000)
            self._machine.change({"0.energy_mj": self.begin_mj + added_mj, "0.power_mw": WATTS * 1000})


@dataclass
class Day:
    """What was left behind."""

    begin_mj: int
    spooled: dict[str, list[dict[str, Any]]]
    """The rows that the first run left on disk."""
    left: dict[str, list[dict[str, Any]]]
    """Those that the second left."""
    first: dict[str, Any]
    """What the agent remembered of the first GPU after the first run."""
    last: dict[str, Any]
    """The same after the second."""
    log: str
    """What the second run said, and which modules it loaded."""
    maps: str
    """Files mapped by its processes."""
    lake: Path

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return hubs.rows(self.lake, query)


@pytest.fixture(scope="module")
def day(nvml_library: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("day")
    machine, env = live_agents.machine_of(2, folder / "scenario.txt", nvml_library)
    meter, kubelet = Meter(machine), Kubelet(folder / "kubelet.sock").start()
    kubelet.pods = listing(*(pod(name, ("nvidia.com/gpu", [device])) for device, name in HELD.items()))
    settings = {"kubelet_socket": kubelet.socket}
    with live_agents.running(folder, env, **settings, **{"hub.address": NOWHERE}) as agent:
        wait_until(lambda: agent.holders() == HELD)
        meter.start()
        watch_the_meter(agent)
        assert agent.stop() == 0
    rows, first = spooled(folder / "spool.sqlite"), track(folder)
    with (
        hubs.running(folder / "workspace") as hub,
        live_agents.running(
            folder, env | {"PYTHONPROFILEIMPORTTIME": "1"}, **settings, **{"hub.address": hub.address}
        ) as agent,
    ):
        wait_until(lambda: agent.holders() == HELD)
        go_and_come_back(kubelet, agent)
        watch_the_meter(agent)
        maps = "".join((PROC / str(pid) / "maps").read_text() for pid in family(agent.process.pid))
        assert agent.stop() == 0
    meter.stop()
    left, last = spooled(folder / "spool.sqlite"), track(folder)
    return Day(meter.begin_mj, rows, left, first, last, "".join(agent.log), maps, folder / "workspace")


def track(folder: Path) -> dict[str, Any]:
    """What the agent remembers of the first GPU."""
    known: dict[str, Any] = saved_state(folder / "spool.sqlite")["windows"]["devices"][uuid(0)]
    return known


def watch_the_meter(agent: LiveAgent) -> None:
    """Wait until the page has seen it move."""
    before = agent.value("device_energy_joules_total", uuid=uuid(0))
    wait_until(lambda: agent.value("device_energy_joules_total", uuid=uuid(0)) != before)


def go_and_come_back(kubelet: Kubelet, agent: LiveAgent) -> None:
    """The kubelet goes, is looked for in vain, and comes back; every page names the holders all the while."""

    def staleness() -> float:
        assert agent.holders() == HELD
        return agent.value("collector_staleness_seconds", collector="placement") or 0.0

    pods = kubelet.pods
    kubelet.stop()
    seen = [staleness()]
    while seen[-1] >= seen[-2:][0]:  # grows until the next visit
        seen.append(staleness())
        time.sleep(0.05)
    again = Kubelet(kubelet.socket).start()
    again.pods = pods
    wait_until(lambda: staleness() >= 0 and "List" in again.asked)
    again.stop()


def test_over_both_runs_the_rows_say_what_the_meter_added(day: Day) -> None:
    """pytorch/ci-infra#1011, dcgm-exporter#536: also while nobody looked."""
    ((energy_mj,),) = day.rows(f"SELECT sum(energy_millijoules) FROM ({windows()})")
    assert energy_mj == day.last["meter"]["total_millijoules"] - day.begin_mj
    first_mj = sum(row["energy_millijoules"] for row in day.spooled["device_window"] if row["device"] == uuid(0))
    assert first_mj == day.first["meter"]["total_millijoules"] - day.begin_mj
    assert 0 < first_mj < energy_mj


def test_a_stop_leaves_the_open_windows_in_the_spool(day: Day) -> None:
    assert {row["device"] for row in day.spooled["device_window"]} == set(HELD)
    assert {row["pod"] for row in day.spooled["held_window"]} == set(HELD.values())
    assert {row["device"] for row in day.spooled["seen_device"]} == set(HELD)


def test_no_second_is_covered_twice_and_none_is_left_out(day: Day) -> None:
    ((window_ms, longest_ms),) = day.rows(
        "SELECT sum(ms)::BIGINT, max(ms)::BIGINT "
        f"FROM (SELECT sum(window_ms) AS ms FROM ({windows()}) GROUP BY day, second)"
    )
    first_ms = sum(row["window_ms"] for row in day.spooled["device_window"] if row["device"] == uuid(0))
    assert window_ms - first_ms == (day.last["covered_second"] - day.first["covered_second"]) * 1000
    assert longest_ms <= 60_000


def test_kubernetes_116459_there_is_no_gap_in_who_holds(day: Day) -> None:
    """Neither while the kubelet was away nor between the two runs, which is filled in and said to be assumed."""
    held = day.rows(
        "SELECT pod, day * 86400 + second AS since, since + seconds, confidence "
        "FROM lake.held_window ORDER BY pod, since"
    )
    for name in HELD.values():
        times = [(since, until) for pod, since, until, _ in held if pod == name]
        assert [until for _, until in times[:-1]] == [since for since, _ in times[1:]]
        assert times[-1][1] == day.last["covered_second"]
    assert {confidence for *_, confidence in held} == {"exact", "assumed"}


def test_everything_is_delivered_in_the_end(day: Day) -> None:
    assert day.left == {}
    ((first, last),) = day.rows("SELECT min(first_sequence), max(last_sequence) FROM lake.ingest_batch")
    assert first == 1
    assert last >= 2


def test_an_agent_at_work_loads_no_database_and_no_data_frame(day: Day) -> None:
    """With page, hub, kubelet and driver, in the agent and in its worker."""
    imported = re.findall(r"import time: .*\| +([\w.]+)", day.log)
    assert {"exporters.push", "collectors.nvml.port", "collectors.placement.collector"} <= set(imported)
    assert [name for name in imported if re.fullmatch(HEAVY, name.split(".")[0])] == []
    assert "libnvidia-ml.so.1" in day.maps
    assert re.findall(rf"/site-packages/(?:{HEAVY})\b", day.maps) == []


def windows() -> str:
    return (
        "SELECT w.* FROM lake.device_window AS w JOIN lake.device_number AS n ON n.device_no = w.dh // 24 "
        f"WHERE n.device = '{uuid(0)}'"
    )
