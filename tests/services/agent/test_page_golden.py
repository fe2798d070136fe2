"""The whole page of a node whose sources are recorded, at a fixed time: what operators get when they scrape it."""

from __future__ import annotations

import subprocess
from itertools import chain
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from collectors.dcgm.collector import Dcgm
from collectors.guard import Guard
from collectors.kernel_log.collector import KernelLog
from collectors.placement.collector import Placement
from collectors.runners import ThreadRunner
from exporters.node import NodePage
from exporters.push import Push, PushSettings
from exporters.spool import Spool
from fleet.catalogue import CATALOGUE
from services.agent.assembly import _claim, _happened
from services.agent.recorder import Recorder, RecorderSettings
from services.agent.runtime import Runtime, agent_measurements
from tests.collectors.dcgm_pages import FIXTURES
from tests.collectors.kernel_records import record
from tests.collectors.kubelet import Kubelet, allocatable, listing, pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from collectors.collector import Collector

NODE = "gpu-node-01"
BOOT = "8080f6b8-106c-44af-8a88-cba615df6397"
SECOND = 1_800_000_000
GPU = "nvidia.com/gpu"


def uuid(index: int) -> str:
    return f"GPU-a000000{index}-1111-2222-3333-444455556666"


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    """Four GPUs to one pod, one shared by two, two to nobody, and one id that is of no GPU here."""
    server = Kubelet(tmp_path / "kubelet.sock").start()
    server.pods = listing(
        pod("llama70b-0", (GPU, [uuid(index) for index in range(4)]), namespace="team-a", container="vllm"),
        pod("train-7b-xk2", (GPU, [uuid(4)]), namespace="team-b", container="trainer"),
        pod("nb-0", (f"{GPU}.shared", [f"{uuid(5)}::0"]), namespace="team-c"),
        pod('nb-1"\\', (f"{GPU}.shared", [f"{uuid(5)}::1"]), namespace="team-c"),
        pod("moved-0", (GPU, ["GPU-ffffffff-1111-2222-3333-444455556666"]), namespace="team-d"),
    )
    server.allocatable = allocatable((GPU, [uuid(index) for index in (0, 1, 2, 3, 4, 6, 7)]))
    yield server
    server.stop()


class Clock:
    """Time of the guards, which moves when it is told to."""

    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def page(tmp_path: Path, kubelet: Kubelet) -> Iterator[bytes]:
    log = tmp_path / "kmsg"
    log.write_text(
        record("NVRM: Xid (PCI:0000:3A:00): 94, pid=4242, name=python, Contained: SM (0x1)")
        + record("NVRM: Xid (PCI:0000:7A:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", seq=2)
        + "x" * 20_000
        + "\n"
    )
    now_ns, clock = SECOND * 1_000_000_000, Clock()

    def guard(name: str, collector: Collector) -> Guard:
        return Guard(name, ThreadRunner(lambda: collector), deadline_seconds=20, clock=clock)

    recorder = Recorder(RecorderSettings(NODE, period_seconds=15, expected_gpus=8))
    devices = guard("dcgm", Dcgm(str(FIXTURES / "h100x8-k8s.prom")))
    placement = guard("placement", Placement(kubelet.socket, clock=clock))
    kernel_log = guard("kernel_log", KernelLog(log, since_boot=True, boot_id=BOOT, wall_ns=lambda: now_ns))
    runtime = Runtime(
        NODE, recorder, devices, [(placement, 5, print), (kernel_log, 1, print)], period_seconds=15, save=print
    )
    for second in (SECOND, SECOND + 15):
        _claim(recorder, placement.visit())
        recorder.tick("dcgm", second, devices.visit().reading, now_ns)
        clock.seconds += 2.5
    _happened(recorder, kernel_log.visit())
    spool = Spool(tmp_path / "spool.sqlite", 1_000_000)
    push = Push(spool, PushSettings(address="127.0.0.1:1"))
    yield NodePage(
        lambda: chain(agent_measurements(NODE, "1.2.3", BOOT), runtime.measurements(), push.measurements(NODE)),
        strict=True,
    ).render()
    spool.close()
    for each in (devices, placement, kernel_log):
        each.close()


def test_the_whole_page_is_this(page: bytes, golden: Callable[[str, bytes], None], promtool_bin: Path) -> None:
    golden("agent/whole-page.prom", page)
    done = subprocess.run([promtool_bin, "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_every_series_is_of_the_catalogue_and_of_this_node(page: bytes) -> None:
    labels = {metric.name: set(metric.labels) for metric in CATALOGUE}
    samples = [s for family in text_string_to_metric_families(page.decode()) for s in family.samples]
    assert len(samples) > 300
    for sample in samples:
        assert set(sample.labels) == labels[sample.name], sample.name
        assert sample.labels["node"] == NODE
    assert len({(s.name, tuple(s.labels.items())) for s in samples}) == len(samples)
