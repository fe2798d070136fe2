"""What goes wrong around an agent: sources that are late, slow, talk nonsense or too much."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collectors.guard import Guard
from collectors.holders.pod_folders import PodFolders
from collectors.holders.procs import ProcessOwners
from collectors.runners import ThreadRunner
from collectors.samples import Claim, DeviceEvent, DeviceSample, Owner, Reading
from services.agent.recorder import MOST_EVENTS, Recorder, RecorderSettings
from services.agent.runtime import Runtime
from tests.services.hub.hubs import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.telemetry import Row

START = 1_800_000_000
CLAIMS = (Claim("GPU-a", "nvidia.com/gpu", Owner("ml", "train-0", "main"), "kubelet"),)


def gpu(uuid: str = "GPU-a", **values: Any) -> DeviceSample:
    return DeviceSample("gpu", uuid, **values)


def page(recorder: Recorder, name: str) -> dict[tuple[str, ...], float]:
    """The series of one metric by their labels but the node."""
    return {m.labels[1:]: m.value for m in recorder.measurements() if m.metric.name == f"gputally_{name}"}


class Source:
    """A source that says one thing."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def collect(self) -> Reading:
        return self._reading

    def close(self) -> None:
        pass


class Rows:
    """The rows that a recorder has given, by table."""

    def __init__(self, recorder: Recorder, source: str = "nvml") -> None:
        self.recorder, self._source = recorder, source
        self.tables: dict[str, list[Any]] = {}

    def tick(self, offset: int, *samples: DeviceSample) -> None:
        second = START + offset
        self.keep(self.recorder.tick(self._source, second, Reading(samples), second * 1_000_000_000))

    def keep(self, rows: Mapping[str, tuple[Row, ...]]) -> None:
        for table, new in rows.items():
            self.tables.setdefault(table, []).extend(new)


def test_an_agent_that_starts_does_not_guess_holders_before_the_kubelet_has_answered() -> None:
    """A guess from processes or a page would be a row of its own, and end what could have been bridged."""
    before = Recorder(RecorderSettings("n1", has_scheduler=True))
    before.claim(CLAIMS, None, is_known=True)
    rows = Rows(before)
    for offset in range(31):
        rows.tick(offset, gpu())
    rows.keep(before.finish(START + 30))
    state = json.loads(json.dumps(before.state()))
    rows.recorder = Recorder(RecorderSettings("n1", has_scheduler=True), state=state)
    for offset in range(33, 36):
        rows.tick(offset, gpu(owner=(Owner(pod="somebody"),)))
        assert page(rows.recorder, "device_held_ratio") == {}
    rows.recorder.claim(CLAIMS, None, is_known=True)
    for offset in range(36, 61):
        rows.tick(offset, gpu(owner=(Owner(pod="somebody"),)))
    held = sorted(
        (row.from_second - START, row.to_second - START, row.pod, row.confidence) for row in rows.tables["held_window"]
    )
    assert held == [(0, 30, "train-0", "exact"), (30, 35, "train-0", "assumed"), (35, 60, "train-0", "exact")]


def test_a_pod_that_comes_again_under_its_name_holds_from_its_first_second(tmp_path: Path) -> None:
    """Its namesake of a moment ago is over: what was known of pods then must not be held against it."""
    old, new, other = (f"7b0b0a4e-0000-4000-8000-0000000000{end}" for end in ("aa", "bb", "cc"))
    kubepods = tmp_path / "cgroup" / "kubepods"
    for folder in (tmp_path / f"logs/ml_train-0_{old}", tmp_path / f"logs/ml_b_{other}", kubepods / f"pod{other}"):
        folder.mkdir(parents=True)
    recorder = Recorder(RecorderSettings("n1"), pods=PodFolders(tmp_path / "logs", tmp_path / "cgroup"))
    rows = Rows(recorder)
    recorder.claim((), None, is_known=True)
    rows.tick(0, gpu())
    for folder in (tmp_path / f"logs/ml_train-0_{new}", kubepods / f"pod{new}"):
        folder.mkdir(parents=True)
    recorder.claim(CLAIMS, None, is_known=True)
    rows.tick(1, gpu())
    assert [labels[4] for labels in page(recorder, "device_held_ratio")] == ["train-0"]


def test_a_driver_that_is_slow_leaves_the_holders_known() -> None:
    """The kubelet's word does not hang on the driver: ticks that come every six seconds leave no gap in it."""
    recorder = Recorder(RecorderSettings("n1"))
    recorder.claim(CLAIMS, None, is_known=True)
    rows = Rows(recorder)
    for offset in range(0, 67, 6):
        rows.tick(offset, gpu())
    assert [(row.from_second - START, row.to_second - START, row.confidence) for row in rows.tables["held_window"]] == [
        (0, 60, "exact")
    ]


def test_dcgm_exporter_500_a_code_on_a_page_is_an_event_where_nobody_else_tells() -> None:
    """No kernel log can be read: a new code is recorded once, and for as long as it stands it is no news."""
    recorder = Recorder(RecorderSettings("n1"))
    rows = Rows(recorder, "dcgm")
    for offset, codes in enumerate([(), (), (79,), (79,), None, (79,)]):
        rows.tick(offset, gpu(xid_codes=codes))
    assert [(row.device, row.code, row.severity, row.source) for row in rows.tables["device_event"]] == [
        ("GPU-a", 79, "critical", "page")
    ]
    assert page(recorder, "device_fault_events_total")["GPU-a", "xid", "79", "critical"] == 1


def test_dcgm_exporter_500_a_page_is_no_witness_beside_the_kernels_log() -> None:
    recorder = Recorder(RecorderSettings("n1"))
    recorder.happened("kernel_log", (), START * 1_000_000_000)
    rows = Rows(recorder, "dcgm")
    for offset, codes in enumerate([(), (79,)]):
        rows.tick(offset, gpu(xid_codes=codes))
    assert rows.tables.get("device_event") is None


def test_faults_of_the_time_between_two_processes_are_recorded_and_none_twice() -> None:
    """The kernel keeps its log: the next process reads it anew, and takes what is not recorded."""

    def xid(second: float) -> DeviceEvent:
        at_ns = round((START + second) * 10**9)
        return DeviceEvent(at_ns, None, "xid", 79, source="kernel_log", pci_bus_id="1", event_id=f"boot/{second}")

    rows = Rows(Recorder(RecorderSettings("n1")))
    rows.tick(0, gpu(pci_bus_id="1"))
    rows.recorder.happened("kernel_log", (xid(-9), xid(0.5)), (START + 1) * 10**9)
    rows.tick(1, gpu(pci_bus_id="1"))
    rows.recorder.happened("kernel_log", (xid(1.5),), (START + 2) * 10**9)
    state = json.loads(json.dumps(rows.recorder.state()))  # and killed before the last one was taken
    rows.recorder = Recorder(RecorderSettings("n1"), state=state)
    rows.recorder.happened("kernel_log", (xid(-9), xid(0.5), xid(1.5), xid(7)), (START + 9) * 10**9)
    rows.tick(9, gpu(pci_bus_id="1"))
    rows.recorder.happened("kernel_log", (xid(-50),), (START + 10) * 10**9)  # the clock was set back
    rows.tick(10, gpu(pci_bus_id="1"))
    told = [(row.event_id, row.device) for row in rows.tables["device_event"]]
    assert told == [(f"boot/{second}", "GPU-a") for second in (-9, 0.5, 1.5, 7, -50)]


def test_a_storm_of_faults_is_counted_and_does_not_fill_the_memory() -> None:
    recorder = Recorder(RecorderSettings("n1"))
    rows = Rows(recorder)
    for part in range(12):
        storm = tuple(
            DeviceEvent(START * 10**9, None, "xid", 31, source="kernel_log", pci_bus_id="x", event_id=f"b/{part}/{n}")
            for n in range(1000)
        )
        recorder.happened("kernel_log", storm, START * 10**9)
    rows.tick(0, gpu())
    assert len(rows.tables["device_event"]) == MOST_EVENTS
    assert page(recorder, "device_fault_events_total")["x", "xid", "31", "warn"] == 12_000
    refused = page(recorder, "collector_rejected_events_total")
    assert refused["recorder", "too_many_events"] == 12_000 - MOST_EVENTS
    recorder.happened("kernel_log", (DeviceEvent(1, None, "xid", 13, source="kernel_log", event_id="b/last"),), 1)
    rows.tick(1, gpu())
    assert len(rows.tables["device_event"]) == MOST_EVENTS + 1


def test_a_page_that_makes_up_devices_is_cut() -> None:
    recorder = Recorder(RecorderSettings("n1"))
    rows = Rows(recorder, "dcgm")
    for offset in range(3):
        rows.tick(offset, *(gpu(f"GPU-{offset}-{n}") for n in range(2000)))
    assert len({labels[0] for labels in page(recorder, "device_info")}) <= 2048
    assert page(recorder, "collector_rejected_events_total")["recorder", "too_many_devices"] == 3 * 976


class SlowOwners(ProcessOwners):
    """Job maps on a share that does not answer."""

    def __init__(self) -> None:
        super().__init__(job_maps=Path("/nonexistent"))
        self.asked, self.released = threading.Event(), threading.Event()

    def jobs(self, samples: Any) -> dict[str, tuple[str, ...]]:
        self.asked.set()
        self.released.wait(60)
        return super().jobs(samples)


def test_files_that_do_not_answer_do_not_hold_up_the_page() -> None:
    owners = SlowOwners()
    recorder = Recorder(RecorderSettings("n1"), processes=owners)
    ticking = threading.Thread(target=Rows(recorder).tick, args=(0, gpu()), daemon=True)
    ticking.start()
    assert owners.asked.wait(10)
    answered = threading.Event()

    def ask() -> None:
        list(recorder.measurements())
        recorder.happened("kernel_log", ())
        answered.set()

    threading.Thread(target=ask, daemon=True).start()
    assert answered.wait(10), "the page waits for a file"
    owners.released.set()
    ticking.join(10)
    assert not ticking.is_alive()


def test_a_bug_in_what_is_done_with_a_visit_does_not_end_the_asking() -> None:
    """Else claims would stand as they were told last, and be billed for ever."""
    used = []

    def use(_: object) -> None:
        used.append(1)
        if len(used) == 1:
            raise ZeroDivisionError

    devices = Guard("nvml", ThreadRunner(lambda: Source(Reading((gpu(),)))), deadline_seconds=5)
    other = Guard("placement", ThreadRunner(lambda: Source(Reading(claims=CLAIMS))), deadline_seconds=5)
    runtime = Runtime(
        "n1", Recorder(RecorderSettings("n1")), devices, [(other, 0.02, use)], period_seconds=1, save=lambda rows: None
    )
    runtime.start()
    try:
        wait_until(lambda: len(used) > 2, 10)
    finally:
        runtime.stop(5)
