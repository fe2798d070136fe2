"""A collector in a process of its own: the true driver path, hung, killed, replaced underneath."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from collectors.guard import Guard
from collectors.runners import ProcessRunner
from tests.nvml_shim.machine import h100, uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.nvml_shim.machine import Machine


@pytest.fixture
def runner(
    machine: Machine, nvml_library: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ProcessRunner]:
    """The NVML collector in its process, on a machine of two GPUs."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_library().parent))
    machine.describe({"*.count": 2, "*.driver": "550.127.08", **h100(0), **h100(1)})
    made = ProcessRunner("nvml", {}, start_seconds=20)
    yield made
    made.close()


def states(guard: Guard) -> dict[str | None, str]:
    visit = guard.visit()
    assert visit.reading is not None, visit.reason
    return {sample.uuid: sample.state for sample in visit.reading.samples}


def until(guard: Guard, wanted: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while (visit := guard.visit()).outcome != wanted:
        assert time.monotonic() < deadline, visit
        time.sleep(0.05)


def descriptors() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_readings_cross_from_the_process(runner: ProcessRunner) -> None:
    guard = Guard("nvml", runner, deadline_seconds=10)
    assert states(guard) == {uuid(0): "ok", uuid(1): "ok"}
    assert runner.pid != os.getpid()
    assert runner.replaced == 0


def test_dcgm_exporter_84_a_hung_driver_call_is_overdue_and_its_process_replaced(
    runner: ProcessRunner, machine: Machine
) -> None:
    """gpud#117, NVSentinel#1576, #1748: the call never returns, and cannot be interrupted."""
    guard = Guard("nvml", runner, deadline_seconds=1)
    states(guard)
    hung = runner.pid
    assert hung is not None
    machine.change({"0.power_mw.sleep_ms": 600_000})
    began = time.monotonic()
    assert guard.visit().outcome == "overdue"
    assert time.monotonic() - began < 10
    assert guard.status().outcome == "overdue"
    assert runner.replaced == 1
    machine.change({"0.power_mw.sleep_ms": None})
    until(guard, "ok")
    assert runner.pid != hung
    deadline = time.monotonic() + 10
    while is_alive(hung):
        assert time.monotonic() < deadline, "the hung process was not killed"
        time.sleep(0.05)


def test_a_driver_that_is_slow_to_start_holds_nobody_up(machine: Machine, runner: ProcessRunner) -> None:
    """Who keeps time is told each time that it is overdue; the process is left to go on, and answers in the end."""
    runner = ProcessRunner("nvml", {}, start_seconds=20, waits_for_start=False)
    machine.change({"*.init.sleep_ms": 1500})
    guard = Guard("nvml", runner, deadline_seconds=0.3)
    pids = set()
    for _ in range(3):
        began = time.monotonic()
        visit = guard.visit()
        assert time.monotonic() - began < 1.2, "as long as the driver took"
        assert (visit.outcome, visit.reason) == ("overdue", "no answer yet: the driver sets up its devices")
        pids.add(runner.pid)
    until(guard, "ok")
    assert (runner.replaced, pids) == (0, {runner.pid})
    runner.close()


def test_a_driver_that_never_starts_is_given_up(machine: Machine, runner: ProcessRunner) -> None:
    runner = ProcessRunner("nvml", {}, start_seconds=0.5, waits_for_start=False)
    machine.change({"*.init.sleep_ms": 600_000})
    guard = Guard("nvml", runner, deadline_seconds=0.4)
    deadline = time.monotonic() + 20
    while not runner.replaced:
        assert guard.visit().outcome == "overdue"
        assert time.monotonic() < deadline
    runner.close()


def test_fifty_processes_leave_nothing_behind(runner: ProcessRunner) -> None:
    """Killed one after the other: no descriptor stays open, no dead process stays unburied."""
    guard = Guard("nvml", runner, deadline_seconds=10)
    states(guard)
    before, pids = descriptors(), set()
    for _ in range(50):
        pid = runner.pid
        assert pid is not None
        pids.add(pid)
        os.kill(pid, signal.SIGKILL)
        assert guard.visit().outcome == "failed"
        until(guard, "ok")
    assert len(pids) == 50
    assert descriptors() == before
    assert [pid for pid in pids if Path("/proc", str(pid)).exists()] == []


def test_processes_that_hang_leave_nothing_behind(machine: Machine, runner: ProcessRunner) -> None:
    guard = Guard("nvml", runner, deadline_seconds=0.3)
    until(guard, "ok")
    before = descriptors()
    for _ in range(5):
        pid = runner.pid
        machine.change({"0.power_mw.sleep_ms": 600_000})
        assert guard.visit().outcome == "overdue"
        machine.change({"0.power_mw.sleep_ms": None})
        until(guard, "ok")
        assert not is_alive(pid or 0)
    assert (descriptors(), runner.replaced) == (before, 5)


def test_a_process_that_is_killed_is_replaced(runner: ProcessRunner) -> None:
    guard = Guard("nvml", runner, deadline_seconds=10)
    states(guard)
    pid = runner.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    visit = guard.visit()
    assert visit.outcome == "failed"
    assert visit.reason == "the collector's process ended (signal 9)"
    until(guard, "ok")
    assert runner.pid != pid


def test_mozilla_translations_1167_a_new_driver_gets_a_new_process(runner: ProcessRunner, machine: Machine) -> None:
    """Code 18: the library that is mapped can never talk to the new driver."""
    guard = Guard("nvml", runner, deadline_seconds=10)
    states(guard)
    pid = runner.pid
    machine.change({"*.count": "!18", "0.ALL": "!18", "1.ALL": "!18"})
    until(guard, "failed")
    assert guard.status().replaced == 1
    machine.change({"*.count": 2, "0.ALL": None, "1.ALL": None})
    until(guard, "ok")
    assert runner.pid != pid


def test_mozilla_translations_1167_while_the_new_driver_waits_for_a_reboot_processes_are_few(
    runner: ProcessRunner, machine: Machine
) -> None:
    """A library that is newer than the kernel's module refuses each new process too, for days."""
    machine.change({"*.init": "!18"})
    guard = Guard("nvml", runner, deadline_seconds=10)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert guard.visit().outcome == "failed"
        time.sleep(0.02)
    assert 2 <= runner.replaced <= 3, "at once, after a second, after two more"


def test_no_driver_is_absent_and_not_an_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, runner: ProcessRunner
) -> None:
    machine.change({"*.init": "!9"})
    guard = Guard("nvml", runner, deadline_seconds=10)
    assert guard.visit().outcome == "absent"


def test_kempnerpulse_23_variables_that_hide_devices_do_not_reach_the_process(
    runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-00000000-0000-5000-8000-000000000000")
    states(Guard("nvml", runner, deadline_seconds=10))
    environment = Path("/proc", str(runner.pid), "environ").read_bytes()
    assert b"CUDA_VISIBLE_DEVICES" not in environment
    assert b"LD_LIBRARY_PATH" in environment


def test_closing_ends_the_process(runner: ProcessRunner) -> None:
    states(Guard("nvml", runner, deadline_seconds=10))
    pid = runner.pid
    assert pid is not None
    runner.close()
    assert not is_alive(pid)


def test_a_process_ends_when_its_agent_is_killed(runner: ProcessRunner) -> None:
    """The end of its input is all that it needs to see."""
    states(Guard("nvml", runner, deadline_seconds=10))
    process = runner._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(10) == 0
