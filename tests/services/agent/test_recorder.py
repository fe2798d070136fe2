"""What the agent remembers, second by second: devices that go, boards cut anew, a clock that jumps, a kubelet away."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.nvml.collector import Nvml
from collectors.samples import Claim, DeviceEvent, DeviceSample, Owner, Reading
from services.agent.recorder import Recorder, RecorderSettings
from tests.collectors.nvml_machines import cut, instance, mig_uuid, seven
from tests.nvml_shim.machine import h100, uuid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.nvml_shim.machine import Machine

START = 1_800_000_000
WINDOW = 60


def claim(device: str, name: str, resource: str = "nvidia.com/gpu") -> Claim:
    return Claim(device, resource, Owner(namespace="ml", pod=name, container="main"), "kubelet")


class Recorded:
    """A recorder and the rows it has given, by table."""

    def __init__(self, *, state: Any = None, **settings: Any) -> None:
        self.recorder = Recorder(RecorderSettings("n1", **settings), state=state)
        self.rows: dict[str, list[Any]] = defaultdict(list)

    def tick(self, second: int, reading: Reading | None) -> None:
        self.keep(self.recorder.tick("nvml", second, reading, second * 1_000_000_000))

    def claims(self, *claims: Claim) -> None:
        self.recorder.claim(claims, None, is_known=True)

    def finish(self, second: int) -> None:
        self.keep(self.recorder.finish(second))

    def keep(self, rows: Any) -> None:
        for table, new in rows.items():
            self.rows[table] += new

    def page(self, name: str) -> dict[tuple[str, ...], float]:
        """The series of one metric by their labels but the node."""
        return {m.labels[1:]: m.value for m in self.recorder.measurements() if m.metric.name == f"gputally_{name}"}

    def holders(self) -> dict[str, str]:
        return {labels[0]: labels[4] for labels in self.page("device_held_ratio")}

    def held(self) -> list[tuple[str, str, int, int, str]]:
        """Who held what, from and to, in seconds since the start."""
        return [
            (row.device, row.pod, row.from_second - START, row.to_second - START, row.confidence)
            for row in sorted(self.rows["held_window"], key=lambda row: (row.device, row.from_second))
        ]

    def seconds_of(self, device: str) -> int:
        return sum(row.window_ms for row in self.rows["device_window"] if row.device == device) // 1000


def gpu(energy_mj: int | None = None, **values: Any) -> DeviceSample:
    return DeviceSample(kind="gpu", uuid=uuid(0), energy_millijoules=energy_mj, **values)


class Watched:
    """The driver's stand-in, read once a second through the true binding."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.second = machine, START
        self.nvml = Nvml(clock=lambda: float(self.second), wall_ns=lambda: self.second * 1_000_000_000)

    def play(self, recorded: Recorded, seconds: Iterable[int]) -> None:
        for offset in seconds:
            self.second = START + offset
            recorded.tick(self.second, self.nvml.collect())


def test_dcgm_exporter_348_a_lost_gpu_is_billed_to_who_holds_it(machine: Machine) -> None:
    """The time of the lost one is not observed, and held all the same; the others go on as they were."""
    machine.describe({"*.count": 8, "*.driver": "550.127.08", **{k: v for i in range(8) for k, v in h100(i).items()}})
    watched, recorded = Watched(machine), Recorded()
    recorded.claims(*(claim(uuid(index), f"train-{index}") for index in range(8)))
    watched.play(recorded, range(31))
    machine.change({"*.count": 7})
    watched.play(recorded, range(31, 121))
    assert (recorded.page("agent_expected_gpus"), recorded.page("agent_seen_gpus")) == ({(): 8.0}, {(): 7.0})
    assert recorded.holders()[uuid(7)] == "train-7"
    recorded.finish(START + 120)
    held = [row for row in recorded.held() if row[0] == uuid(7)]
    assert held == [(uuid(7), "train-7", 0, 60, "exact"), (uuid(7), "train-7", 60, 120, "exact")]
    windows = [row for row in recorded.rows["device_window"] if row.device == uuid(7)]
    assert [(row.window_ms, row.observed_ms, row.state) for row in windows] == [
        (60_000, 30_000, "lost"),
        (60_000, 0, "lost"),
    ]
    assert {row.state for row in recorded.rows["device_window"] if row.device != uuid(7)} == {"ok"}


def test_gpu_operator_2482_a_board_that_is_cut_anew_covers_each_second_once(machine: Machine) -> None:
    """dcgm-exporter#443, #747: the old instances end, the new ones begin, the board goes on."""
    board = {"*.count": 1, "*.driver": "550.127.08", **h100(0)}
    machine.describe({**board, **seven(0)})
    watched, recorded = Watched(machine), Recorded()
    old, new = [mig_uuid(0, slot) for slot in range(7)], [mig_uuid(1, 0), mig_uuid(1, 1)]
    recorded.claims(*(claim(name, f"small-{name}", "nvidia.com/mig-1g.10gb") for name in old))
    watched.play(recorded, range(76))
    halves = {
        key.replace("1.mig", "0.mig"): value
        for slot, gi in ((0, 1), (1, 2))
        for key, value in instance(1, slot, gi, (64, 3 + slot, 3 + slot, 40)).items()
    }
    machine.describe({**board, **cut(0), **halves})
    recorded.claims(*(claim(name, f"large-{name}", "nvidia.com/mig-3g.40gb") for name in new))
    watched.play(recorded, range(76, 151))
    recorded.finish(START + 150)
    seconds = {device: recorded.seconds_of(device) for device in (uuid(0), *old, *new)}
    assert seconds[uuid(0)] == 150
    assert {seconds[device] for device in old} == {75}
    assert {seconds[device] for device in new} == {74}, "their first second ends when they are seen first"
    held = defaultdict(list)
    for device, pod, since, until, _ in recorded.held():
        held[device, pod].append((since, until))
    assert [held[name, f"small-{name}"] for name in old] == [[(0, 60), (60, 75)]] * 7
    assert [held[name, f"large-{name}"] for name in new] == [[(75, 120), (120, 150)]] * 2
    assert len(held) == 9
    assert {row.device for row in recorded.rows["seen_device"]} == {uuid(0), *old, *new}


@given(st.lists(st.integers(-300, 300), min_size=1, max_size=40), st.booleans())
def test_whatever_the_clock_does_no_second_counts_twice_and_no_joule_is_lost(jumps: list[int], is_cut: bool) -> None:
    """A clock that is set back and forth, with a restart of the agent in the middle."""
    recorded, second, energy_mj = Recorded(), START, 5_000
    recorded.claims(claim(uuid(0), "train-0"))
    recorded.tick(second, Reading((gpu(energy_mj),)))
    newest = second
    for place, jump in enumerate((*jumps, 400, 1, 1)):
        if is_cut and place == len(jumps) // 2:
            recorded = restarted(recorded)
        # Whatever happened, time is ahead of all that was seen in the end.
        second = newest + jump if place >= len(jumps) else second + jump
        newest = max(newest, second)
        energy_mj += 100
        recorded.tick(second, Reading((gpu(energy_mj),)))
    recorded.finish(second)
    windows: dict[int, int] = defaultdict(int)
    for row in recorded.rows["device_window"]:
        windows[row.window_start_second] += row.window_ms
    assert sum(row.energy_millijoules or 0 for row in recorded.rows["device_window"]) == energy_mj - 5_000
    assert max(windows.values()) <= WINDOW * 1000
    assert sum(windows.values()) == (newest - START) * 1000
    held = sorted((row.from_second, row.to_second) for row in recorded.rows["held_window"])
    assert all(until <= since for (_, until), (since, _) in pairwise(held))
    assert all(START <= since < until <= newest for since, until in held)


def restarted(before: Recorded) -> Recorded:
    """The agent ends as it does when it is told to, and another goes on from what was saved."""
    before.finish(START + 10**6)
    after = Recorded(state=json.loads(json.dumps(before.recorder.state())))
    after.rows = before.rows
    after.claims(claim(uuid(0), "train-0"))
    return after


@pytest.mark.parametrize("is_restarted", [False, True], ids=["same process", "after a restart"])
def test_a_kubelet_that_has_gone_leaves_the_holders_unknown_not_nobody(is_restarted: bool) -> None:
    """Its socket is gone for minutes during an upgrade; the pods run on. What is short enough is filled in."""
    recorded = Recorded(bridge_seconds=300)
    recorded.claims(claim(uuid(0), "train-0"))
    for offset in range(31):
        recorded.tick(START + offset, Reading((gpu(),)))
    if is_restarted:
        recorded.finish(START + 30)
        rows, recorded = recorded.rows, Recorded(bridge_seconds=300, state=recorded.recorder.state())
        recorded.rows = rows
    recorded.recorder.claim(None, None, is_known=True)  # the socket is not there
    for offset in range(31, 151):
        recorded.tick(START + offset, Reading((gpu(),)))
    assert recorded.holders() == {}
    recorded.claims(claim(uuid(0), "train-0"))
    for offset in range(151, 181):
        recorded.tick(START + offset, Reading((gpu(),)))
    recorded.finish(START + 180)
    assert sum(until - since for *_, since, until, _ in recorded.held()) == 180
    assumed = [(since, until) for *_, since, until, confidence in recorded.held() if confidence == "assumed"]
    assert (assumed[0][0], assumed[-1][1]) == (30, 150)


def test_a_node_that_never_had_a_kubelet_has_no_holders() -> None:
    recorded = Recorded()
    recorded.recorder.claim(None, None, is_known=True)
    for offset in range(121):
        recorded.tick(START + offset, Reading((gpu(),)))
    assert recorded.rows["held_window"] == []
    assert recorded.page("agent_unattributed_claims") == {}


def test_an_event_that_waits_for_the_kernels_log_is_not_lost_when_the_agent_stops() -> None:
    recorded = Recorded()
    recorded.recorder.happened("kernel_log", (), START * 1_000_000_000)
    event = DeviceEvent(START * 1_000_000_000, uuid(0), "xid", 79, source="nvml", severity="critical")
    recorded.tick(START, Reading((gpu(),), events=(event,)))
    assert recorded.rows["device_event"] == []
    recorded.finish(START + 1)
    assert [(row.device, row.code, row.source) for row in recorded.rows["device_event"]] == [(uuid(0), 79, "nvml")]


def test_a_fault_does_not_wait_for_the_end_of_the_window() -> None:
    recorded = Recorded()
    recorded.tick(START, Reading((gpu(pci_bus_id="00000000:1B:00.0"),)))
    event = DeviceEvent(None, None, "xid", 79, source="kernel_log", pci_bus_id="00000000:1B:00.0", event_id="b/1.2")
    recorded.recorder.happened("kernel_log", (event, event))
    recorded.tick(START + 1, Reading((gpu(pci_bus_id="00000000:1B:00.0"),)))
    assert [(row.device, row.code) for row in recorded.rows["device_event"]] == [(uuid(0), 79)]
