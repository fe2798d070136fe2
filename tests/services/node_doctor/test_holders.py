"""What the doctor of a node says of who holds its devices."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from fleet.agent_config import Agent
from services.agent.doctor import devices, holders
from services.agent.doctor.deadline import within
from services.finding import Finding
from tests.collectors.kubelet import Kubelet, Refusal, listing, pod
from tests.collectors.nvml_machines import dgx
from tests.nvml_shim.machine import uuid

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pytest

    from tests.nvml_shim.machine import Machine

GPU = "nvidia.com/gpu"
POD_UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


def asked(kubelet: Kubelet, samples: Any = None) -> list[Finding]:
    return list(holders.kubelet(Agent(kubelet_socket=str(kubelet.socket)), samples))


def test_pods_with_devices_are_counted(kubelet: Kubelet, driver: Machine) -> None:
    driver.describe(dgx(2))
    _, samples = devices.look(Agent(), driver_start_seconds=30)
    kubelet.pods = listing(pod("a", (GPU, [uuid(0)])), pod("b", (GPU, [uuid(1)])))
    (told,) = asked(kubelet, samples)
    assert (told.level, told.message.partition(";")[0]) == ("ok", "2 pods hold 2 device ids")

    kubelet.pods = listing(pod("a", (GPU, [uuid(7)])))
    told, claim = asked(kubelet, samples)
    assert claim.level == "warn"
    assert f"1 device ids name no device of this node (unknown_device), such as {GPU} {uuid(7)}" in claim.message


def test_a_node_without_a_kubelet_and_a_pod_without_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Agent(kubelet_socket=str(tmp_path / "none" / "kubelet.sock"))
    (told,) = holders.kubelet(config, None)
    assert (told.level, "right on a node without Kubernetes" in told.message) == ("warn", True)
    assert list(holders.pods(config)) == []
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    (told,) = holders.kubelet(config, None)
    assert (told.level, "mount the host's folder" in told.message) == ("fail", True)


def test_a_socket_that_may_not_be_connected_to(
    kubelet: Kubelet, stranger: Callable[[], AbstractContextManager[None]]
) -> None:
    kubelet.socket.chmod(0)
    with stranger():
        (told,) = asked(kubelet)
    assert (told.level, "run as user 0" in told.message) == ("fail", True)


def test_a_kubelet_that_is_down_or_refuses(kubelet: Kubelet, tmp_path: Path) -> None:
    kubelet.pods = Refusal.RESOURCE_EXHAUSTED
    (told,) = asked(kubelet)
    assert (told.level, "RESOURCE_EXHAUSTED" in told.message) == ("fail", True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))
    (told,) = holders.kubelet(Agent(kubelet_socket=str(tmp_path / "left.sock")), None)
    assert (told.level, "nobody listens" in told.message) == ("fail", True)


def test_a_kubelet_that_hangs_is_left_after_its_deadline(kubelet: Kubelet) -> None:
    kubelet.hangs = True
    (told,) = within(0.5, "kubelet", lambda: asked(kubelet))
    assert told.message.startswith("no answer within 0.5 seconds")
    kubelet.released.set()


def test_pod_folders_and_which_of_them_live(kubelet: Kubelet, tmp_path: Path) -> None:
    logs, cgroups = tmp_path / "logs", tmp_path / "cgroup"
    config = Agent(kubelet_socket=str(kubelet.socket), pod_logs=str(logs), cgroups=str(cgroups))
    (told,) = holders.pods(config)
    assert (told.level, "lists no pod" in told.message) == ("warn", True)

    (logs / f"ml_train-0_{POD_UID}").mkdir(parents=True)
    (told,) = holders.pods(config)
    assert (told.level, "Mount the host's /sys/fs/cgroup" in told.message) == ("warn", True)

    (cgroups / "kubepods.slice" / f"kubepods-pod{POD_UID.replace('-', '_')}.slice").mkdir(parents=True)
    (cgroups / "cgroup.controllers").touch()
    (told,) = holders.pods(config)
    assert (told.level, "1 of them live" in told.message, "cgroup v2" in told.message) == ("ok", True, True)


def test_nvidia_docker_1483_a_container_that_sees_only_itself(tmp_path: Path) -> None:
    (told,) = holders.processes(Agent(), tmp_path)
    assert (told.level, "hostPID: true" in told.message) == ("warn", True)
    (told,) = holders.processes(Agent(processes=False), tmp_path)
    assert told.level == "ok"


def test_job_maps(tmp_path: Path) -> None:
    (told,) = holders.job_maps(Agent(job_maps=str(tmp_path / "none")))
    assert told.level == "fail"
    (tmp_path / "0").write_text("4711\n")
    (told,) = holders.job_maps(Agent(job_maps=str(tmp_path)))
    assert told == Finding("ok", "job maps", f"1 devices have jobs in {tmp_path}")
