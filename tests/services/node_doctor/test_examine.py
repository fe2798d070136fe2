"""The doctor of a node as a whole: deadlines, packages, configuration, both command lines; it changes nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from services.agent import doctor
from services.agent.doctor.deadline import within
from services.finding import Finding
from tests.collectors.nvml_machines import activity, dgx
from tests.nvml_shim.machine import uuid
from tests.program import environment, gputally, new_workspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.collectors.kubelet import Kubelet
    from tests.nvml_shim.machine import Machine


def test_a_look_that_hangs_and_one_that_breaks() -> None:
    gate = threading.Event()
    hung = within(0.05, "disk", lambda: [Finding("ok", "disk", "")] if gate.wait(30) else [])
    assert hung[0].level == "fail"
    gate.set()
    broken = within(5, "disk", lambda: [Finding("ok", "disk", str(1 // 0))])
    assert broken == [Finding("fail", "disk", "ZeroDivisionError: integer division or modulo by zero")]


def test_without_the_extra_nothing_else_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("grpcio", "no-such-package"))
    last = doctor.examine_node()[-1]
    assert last == Finding("fail", "packages", "no-such-package is not installed: install gputally[agent]")


@pytest.mark.parametrize("text", ["[agent]\nnodes = 'x'\n", "[agent", "[agent]\ncluster = ''\n"])
def test_a_bad_configuration_is_told_and_ends_the_look(tmp_path: Path, text: str) -> None:
    file = tmp_path / "gputally.toml"
    file.write_text(text)
    assert (doctor.examine_node(file)[-1].level, doctor.examine_node(file)[-1].subject) == ("fail", "config")
    assert doctor.examine_node(tmp_path / "none.toml")[-1].level == "fail"


def agent_doctor(file: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "services.agent", "doctor", "--config", str(file)]
    env = environment(**changes)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=env)


def node_file(tmp_path: Path, kubelet: Kubelet) -> Path:
    log = tmp_path / "kern.log"
    log.touch()
    file = tmp_path / "gputally.toml"
    file.write_text(
        f'[agent]\nkubelet_socket = "{kubelet.socket}"\nkernel_log = "{log}"\n[agent.page]\nlisten = "127.0.0.1:0"\n'
    )
    return file


def test_the_agents_doctor_prints_lines_and_changes_nothing(
    driver: Machine, nvml_library: Callable[..., Path], kubelet: Kubelet, tmp_path: Path
) -> None:
    driver.describe(dgx(1) | activity("0"))
    file = node_file(tmp_path, kubelet)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    found = {"LD_LIBRARY_PATH": str(nvml_library().parent), "NVML_SHIM_SCENARIO": str(driver.scenario)}
    done = agent_doctor(file, **found)
    assert (done.returncode, done.stderr) == (0, "")
    assert {line[:6] for line in done.stdout.splitlines()} <= {"ok    ", "warn  "}
    assert "ok    driver: 550.127.08\n" in done.stdout
    assert sorted(path.name for path in tmp_path.rglob("*")) == before

    driver.change({"0.power_mw": "!16"})
    done = agent_doctor(file, **found)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"FAIL  device {uuid(0)}: " in done.stdout


def test_gputally_doctor_takes_the_node_along(
    driver: Machine, nvml_library: Callable[..., Path], kubelet: Kubelet, tmp_path: Path
) -> None:
    workspace = new_workspace(tmp_path / "ws")
    (workspace / "gputally.toml").write_text(node_file(tmp_path, kubelet).read_text())
    found = {"LD_LIBRARY_PATH": str(nvml_library().parent), "NVML_SHIM_SCENARIO": str(driver.scenario)}
    done = gputally("-C", workspace, "doctor", "--node", env=environment(**found))
    assert (done.returncode, done.stderr) == (0, "")
    assert "ok    extension ducklake: " in done.stdout
    assert "ok    driver: 550.127.08\n" in done.stdout
    assert "driver" not in gputally("-C", workspace, "doctor").stdout
