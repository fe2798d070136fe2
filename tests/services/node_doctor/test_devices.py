"""What the doctor of a node says of its devices."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleet.agent_config import Agent
from services.agent.doctor import devices
from services.finding import Finding
from tests.collectors.nvml_machines import dgx, seven
from tests.nvml_shim.machine import h100, uuid

if TYPE_CHECKING:
    from tests.nvml_shim.machine import Machine


def seen(config: Agent = Agent()) -> dict[str, Finding]:  # noqa: B008 - frozen
    found, _ = devices.look(config, driver_start_seconds=30)
    return {finding.subject: finding for finding in found}


def test_a_node_of_hoppers_is_well(driver: Machine) -> None:
    driver.describe(dgx(2))
    found = seen(Agent(expected_gpus=2))
    assert found["driver"] == Finding("ok", "driver", "550.127.08")
    assert found["devices"] == Finding("ok", "devices", "2 GPUs")
    assert found[f"device {uuid(1)}"] == Finding("ok", f"device {uuid(1)}", "NVIDIA H100 80GB HBM3: ok")
    assert found["activity"].message == "sm, occupancy, tensor and memory are measured on all 2"
    assert {finding.level for finding in found.values()} <= {"ok", "warn"}


def test_instances_are_counted_and_measured(driver: Machine) -> None:
    driver.describe(dgx(2) | seven(1))
    found = seen()
    assert found["devices"].message == "2 GPUs and 7 MIG instances"
    assert "7 MIG instances: ok" in found[f"device {uuid(1)}"].message
    assert found["activity"] == Finding("ok", "activity", "sm, occupancy, tensor and memory are measured on all 8")


def test_a_board_without_a_profiling_unit_tells_busy_only(driver: Machine) -> None:
    driver.describe({"*.count": 1, "*.driver": "550.127.08", **h100(0), "0.gpm": 0})
    assert seen()["activity"].level == "warn"
    assert seen()["activity"].message.startswith("only `busy`")


def test_a_cut_board_without_a_profiling_unit_tells_nothing(driver: Machine) -> None:
    driver.describe(dgx(1) | seven(0) | {"0.gpm": 0})
    assert seen()["activity"].message.startswith("nothing measures 7 of 7, theirs is unknown")


def test_dcgm_exporter_348_a_lost_board_must_be_mended(driver: Machine) -> None:
    driver.describe(dgx(2) | {"1.ALL": "!15"})
    found = seen(Agent(expected_gpus=2))
    assert found["devices"].level == "fail"
    assert "1 of the 2 expected" in found["devices"].message


def test_a_board_that_needs_a_reset_is_told_with_the_fix(driver: Machine) -> None:
    driver.describe(dgx(2) | {"1.power_mw": "!16"})
    found = seen()[f"device {uuid(1)}"]
    assert found.level == "fail"
    assert "needs a reset: drain it, then" in found.message


def test_processes_that_may_not_be_listed(driver: Machine) -> None:
    driver.describe(dgx(1) | {"0.procs": "!4"})
    found = seen()
    assert found["device processes"].level == "warn"
    assert "run as root" in found["device processes"].message
    assert "no_permission" in found["refused"].message


def test_no_driver_is_a_failure_with_the_fix(machine: Machine) -> None:
    machine.describe({"*.init": "!12"})
    found = seen()["driver"]
    assert found.level == "fail"
    assert "install the NVIDIA driver" in found.message


def test_dcgm_exporter_84_a_hung_driver_is_told_and_not_waited_for(driver: Machine) -> None:
    driver.change({"*.init.sleep_ms": 60_000})
    began = time.monotonic()
    found, samples = devices.look(Agent(), driver_start_seconds=0)
    assert time.monotonic() - began < 20
    assert samples is None
    assert found[0].level == "fail"
    assert "the driver hangs" in found[0].message


def test_an_exporter_that_does_not_answer() -> None:
    found = seen(Agent(devices="dcgm", dcgm_url="http://127.0.0.1:1/metrics"))
    assert found["dcgm"].level == "fail"
