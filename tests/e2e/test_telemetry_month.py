"""From the driver to the books: what a scenario says is what lake and statement say, to the last second and joule.

The driver's stand-in is read through the true binding, rows go through the agent's own recorder, spool and push to a
real hub in its own process, and from its lake into `gputally build`. Only the seconds are not waited for: an hour is
played, half of it before the end of a month.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.build import build_period
from chargeback.checking import check_period
from chargeback.load import load_files
from collectors.nvml.collector import Nvml
from collectors.placement.collector import Placement
from fleet.agent_config import Agent, AgentHub
from services.agent.assembly import NodeAgent
from services.workspace import Workspace
from tests.chargeback.ledger import write_rows
from tests.collectors.kubelet import Kubelet, listing, pod
from tests.nvml_shim.machine import h100, uuid
from tests.services.hub import hubs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.nvml_shim.machine import Machine

HALF = 1800
JOULES = {0: 700, 1: 120}
"""What each device draws in a second."""
RESET_AT = 2400
BLIND = range(1200, 1235)
LLM = range(600, 3000)


def month_start() -> datetime:
    """The last month that began some hours ago."""
    now = datetime.now(UTC) - timedelta(hours=2)
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


class Played:
    """An hour on a node with two GPUs, second by second."""

    def __init__(self, machine: Machine, agent: NodeAgent, kubelet: Kubelet, start: int) -> None:
        self.machine, self.agent, self.kubelet, self.start = machine, agent, kubelet, start
        self.second = start
        self.placement = Placement(str(kubelet.socket), clock=lambda: float(self.second))
        self.nvml = Nvml(clock=lambda: float(self.second), wall_ns=lambda: self.second * 1_000_000_000)

    def energy_mj(self, device: int, offset: int) -> int:
        """The meter of a device; that of device 1 begins again, at the reset, from nothing."""
        since = offset - RESET_AT if device == 1 and offset >= RESET_AT else offset + 1_000_000
        return since * JOULES[device] * 1000

    def play(self) -> None:
        for offset in range(2 * HALF + 1):
            self.second = self.start + offset
            self.machine.change({f"{device}.energy_mj": self.energy_mj(device, offset) for device in JOULES})
            if offset in BLIND:
                self.machine.change({"*.count": "!999"})
            elif offset == BLIND.stop:
                self.machine.change({"*.count": 2})
            reading = None if offset in BLIND else self.nvml.collect()
            rows = self.agent._recorder.tick("nvml", self.second, reading, self.second * 1_000_000_000)
            self.agent._runtime._record(rows)
            self.claims(offset)
        self.agent._runtime._record(self.agent._recorder.finish(self.second))

    def claims(self, offset: int) -> None:
        """From this second on. `train` holds device 1 all the time, `llm` device 0 for a while."""
        if offset not in (0, LLM.start, LLM.stop):
            return
        held = [pod("train-0", ("nvidia.com/gpu", [uuid(1)]), namespace="blue")]
        if offset in LLM:
            held.append(pod("llm-0", ("nvidia.com/gpu", [uuid(0)]), namespace="red"))
        self.kubelet.pods = listing(*held)
        self.second += 1  # the next poll
        found = self.placement.collect()
        self.agent._recorder.claim(found.claims, found.allocatable, is_known=True)


@pytest.fixture
def built(machine: Machine, tmp_path: Path, kubelet_server: Kubelet) -> tuple[Workspace, datetime]:
    """The workspace after the hour, with both months built."""
    machine.describe({"*.count": 2, "*.driver": "550.127.08", **h100(0), **h100(1), "0.gpm": 0, "1.gpm": 0})
    machine.change({"0.util_gpu": 50, "1.util_gpu": 100})
    boundary = month_start()
    with hubs.running(tmp_path / "workspace") as hub:
        config = Agent(
            cluster="c", kubelet_socket=str(kubelet_server.socket), processes=False,
            spool=str(tmp_path / "spool.sqlite"), hub=AgentHub(address=hub.address),
        )  # fmt: skip
        agent = NodeAgent(config, "n1", "8080f6b8-106c-44af-8a88-cba615df6397", "1")
        assert agent._push is not None
        assert agent._spool is not None
        agent._push.start()
        Played(machine, agent, kubelet_server, int(boundary.timestamp()) - HALF).play()
        agent._push.stop(30)
        assert agent._spool.status.batch_count == 0
        assert agent._spool.status.dropped_batches == {}
        agent._spool.close()
    workspace = Workspace.at(tmp_path / "workspace")
    with workspace.open_lake() as lake:
        load_inputs(lake, tmp_path, boundary)
        for period in periods(boundary):
            assert build_period(lake, workspace.config, period).is_new
            assert not build_period(lake, workspace.config, period).is_new
            assert check_period(lake.connection, workspace.config, period, strict=False) == []
    return workspace, boundary


@pytest.fixture
def kubelet_server(tmp_path: Path) -> Iterator[Kubelet]:
    server = Kubelet(tmp_path / "kubelet.sock").start()
    yield server
    server.stop()


def periods(boundary: datetime) -> tuple[str, str]:
    return (boundary - timedelta(days=1)).strftime("%Y-%m"), boundary.strftime("%Y-%m")


def load_inputs(lake: Any, folder: Path, boundary: datetime) -> None:
    """A node that costs 16 an hour, from an hour before the boundary to an hour after it, and two teams."""
    start, end = boundary - timedelta(hours=1), boundary + timedelta(hours=1)
    node = {"node": "n1", "gpu_count": "2", "valid_from": start.isoformat(), "valid_to": end.isoformat()}
    teams = [{"team": name, "match_namespace": name} for name in ("red", "blue")]
    load_files(lake, "inventory", [write_rows(folder / "inventory.csv", "inventory", [node | {"resource_id": "i-1"}])])
    load_files(lake, "teams", [write_rows(folder / "teams.csv", "teams", teams)])
    for begin, stop in ((start, boundary), (boundary, end)):
        first = begin.replace(day=1, hour=0)
        charge = {
            "ChargePeriodStart": begin.isoformat(), "ChargePeriodEnd": stop.isoformat(), "BilledCost": "16",
            "ResourceId": "i-1", "BillingPeriodStart": first.isoformat(),
            "BillingPeriodEnd": (first + timedelta(days=32)).replace(day=1).isoformat(),
            "ServiceCategory": "Compute", "InvoiceId": begin.strftime("%Y-%m"),
        }  # fmt: skip
        name = f"charges-{begin:%Y-%m}.csv"
        load_files(lake, "charges", [write_rows(folder / name, "charges", [charge])])
        invoice = {"invoice_id": begin.strftime("%Y-%m"), "period": begin.strftime("%Y-%m"), "total": "16"}
        load_files(lake, "invoices", [write_rows(folder / f"invoice-{begin:%Y-%m}.csv", "invoices", [invoice])])


def ask(workspace: Workspace, query: str) -> list[tuple[Any, ...]]:
    with workspace.open_lake(read_only=True) as lake:
        return lake.connection.execute(query).fetchall()


def test_the_lake_and_the_books_say_what_the_scenario_says(built: tuple[Workspace, datetime]) -> None:
    workspace, boundary = built
    before, after = periods(boundary)
    energy = ask(workspace, "SELECT period, device, energy_millijoules FROM lake.device_hour ORDER BY 1, 2")
    assert energy == [
        (before, uuid(0), HALF * 700_000),
        (before, uuid(1), HALF * 120_000),
        (after, uuid(0), HALF * 700_000),
        # One second lies between the last reading of the old meter and the first of the new one: nobody saw it.
        (after, uuid(1), (HALF - 1) * 120_000),
    ]
    used = ask(
        workspace, "SELECT period, device, busy_ms, busy_observed_ms, window_ms FROM lake.device_hour ORDER BY 1, 2"
    )
    seen_before = (HALF - len(BLIND)) * 1000
    assert used == [
        (before, uuid(0), seen_before // 2, seen_before, HALF * 1000),
        (before, uuid(1), seen_before, seen_before, HALF * 1000),
        (after, uuid(0), HALF * 500, HALF * 1000, HALF * 1000),
        (after, uuid(1), HALF * 1000, HALF * 1000, HALF * 1000),
    ]
    held = ask(
        workspace,
        "SELECT period, team, sum(held_gpu_microseconds) // 1000000 FROM lake.held_hour GROUP BY 1, 2 ORDER BY 1, 2",
    )
    assert held == [
        (before, "blue", HALF),
        (before, "red", HALF - LLM.start),
        (after, "blue", HALF),
        (after, "red", LLM.stop - HALF),
    ]
    # 16 for 2 GPUs of an hour: 1 GPU-second costs 16 / 7200; what nobody held is idle, shared by what they held.
    statement = ask(
        workspace,
        "SELECT period, team, sum(gpu_microseconds) FILTER (WHERE category = 'held') // 1000000, sum(amount) "
        "FROM lake.statement_line GROUP BY 1, 2 ORDER BY 1, 2",
    )
    assert [(period, team, seconds) for period, team, seconds, _ in statement] == held
    for period in (before, after):
        assert sum(amount for found, _, _, amount in statement if found == period) == 16
