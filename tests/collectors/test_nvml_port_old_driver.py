"""Drivers that lack functions, old or new, each in a process of its own, as the agent meets them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.nvml_shim.machine import GIB, ROOT

if TYPE_CHECKING:
    from tests.nvml_shim.machine import Machine

READ = """
import json
from collectors.nvml.port import NvmlPort
from dataclasses import asdict
with NvmlPort.open() as port:
    device = port.devices()[0]
    with port.gpm(device) as meter:
        activity = meter.read().reason
    print(json.dumps({
        "memory": asdict(device.memory().known),
        "throttle_bits": device.throttle_bits().value,
        "temperature_celsius": device.temperature_celsius().value,
        "margin": device.temperature_margin_celsius().reason,
        "processes": [row.pid for row in device.processes().known.rows],
        "activity": activity,
    }))
"""


def test_a_new_driver_found_by_its_soname(machine: Machine) -> None:
    machine.change({"0.procs": "4242:1000", "0.throttle_reasons": "0x8"})
    assert machine.elsewhere(READ) == {
        "memory": {
            "total_bytes": 80 * GIB,
            "used_bytes": 60 * GIB,
            "reserved_bytes": {"value": GIB // 2, "reason": None, "code": None},
        },
        "throttle_bits": 4,
        "temperature_celsius": 61,
        "margin": None,
        "processes": [4242],
        "activity": None,
    }


def test_an_old_driver_answers_by_its_older_calls(machine: Machine) -> None:
    machine.change({"0.procs": "4242:1000", "0.throttle_reasons": "0x8", "0.temp_c": -5})
    lacking = ("MEMORY_V2", "EVENT_REASONS", "TEMPERATURE_V", "PROCESSES_V3", "GPM")
    assert machine.elsewhere(READ, *lacking) == {
        "memory": {
            "total_bytes": 80 * GIB,
            "used_bytes": 60 * GIB + GIB // 2,  # it counts what it reserves as used
            "reserved_bytes": {"value": None, "reason": "function_missing", "code": None},
        },
        "throttle_bits": 8,
        "temperature_celsius": -5,
        "margin": "function_missing",
        "processes": [4242],
        "activity": "function_missing",
    }


UNSIGNED = """
import json
from collectors.nvml.port import NvmlPort
with NvmlPort.open() as port:
    reading = port.devices()[0].temperature_celsius()
    print(json.dumps([reading.value, reading.reason]))
"""


@pytest.mark.parametrize(
    ("celsius", "expected"), [(2**32 - 1, [None, "sentinel"]), (2**31, [None, "out_of_range"]), (0, [0, None])]
)
def test_the_unsigned_temperature(machine: Machine, celsius: int, expected: list[object]) -> None:
    machine.change({"0.temp_c": celsius})
    assert machine.elsewhere(UNSIGNED, "TEMPERATURE_V") == expected


PROCESSES = """
import json
from collectors.nvml.port import NvmlPort
with NvmlPort.open() as port:
    found = port.devices()[0].processes(pid_exists={4242}.__contains__).known
    print(json.dumps([[row.pid for row in found.rows], found.rejected_rows]))
"""


def test_a_driver_that_dropped_the_older_call_for_processes(machine: Machine) -> None:
    machine.change({"0.procs": "4242:1000 99999:500"})
    assert machine.elsewhere(PROCESSES, "PROCESSES_V2") == [[4242], 1]


@pytest.mark.parametrize("blocked", ["pynvml", ""])
def test_a_machine_without_binding_or_driver_imports_the_port(tmp_path: object, blocked: str) -> None:
    code = f"""
import sys
if {blocked!r}: sys.modules[{blocked!r}] = None
from collectors.nvml.port import NvmlPort
from fleet.errors import GputallyError
assert "pynvml" not in sys.modules or {blocked!r}
try:
    NvmlPort.open().close()
except GputallyError as error:
    print(type(error).__name__)
"""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    expected = {"MissingDependencyError"} if blocked else {"DriverAbsentError", "DriverMismatchError", ""}
    assert (done.stdout.strip() in expected, done.stderr) == (True, "")
