"""The NVML collector on machines that are well: what a row holds, and how often each part of it is asked for."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from collectors.nvml.collector import Nvml
from collectors.registry import make_collector
from collectors.samples import DeviceProcess, Rejected
from tests.collectors.nvml_machines import START_NS, Watched, activity, dgx
from tests.nvml_shim.machine import GIB, uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.nvml_shim.machine import Machine


@pytest.fixture
def watched(machine: Machine) -> Iterator[Watched]:
    machine.describe(dgx(2))
    made = Watched()
    yield made
    made.nvml.close()
    assert machine.library.shim_samples_alive() == 0
    assert machine.library.shim_event_sets_alive() == 0


FIELDS = {
    "0.fi3": "3:5",
    "0.fi4": "3:6",
    "0.fi5": "3:7",
    "0.fi6": "3:8",
    "0.fi29": "1:2",
    "0.fi30": "1:1",
    "0.fi74": "3:1000",
    "0.fi75": "3:2000",
    "0.fi269": "3:3000",
    "0.fi270": "3:4000",
    "0.fi271": "3:5000",
    "0.fi82": "1:71",
    "0.fi94": "1:9",
    "0.fi138.s4294967295": "3:11",
    "0.fi139.s4294967295": "3:12",
    "0.fi186": "1:498000",
    "0.fi197": "3:100",
    "0.fi198": "3:200",
    "0.fi230": "1:0",
}


def test_a_row_holds_all_that_the_device_says(machine: Machine, watched: Watched) -> None:
    machine.change(FIELDS)
    watched.visit()
    row = watched.rows()[uuid(0)]
    assert (row.kind, row.slot, row.vendor, row.model) == ("gpu", "0", "nvidia", "NVIDIA H100 80GB HBM3")
    assert (row.driver, row.pci_bus_id, row.architecture) == ("550.127.08", "00000000:1B:00.0", "hopper")
    assert (row.serial, row.minor_number, row.state, row.quality) == ("1650923000000", 0, "ok", ())
    assert (row.counters, row.ts_nanoseconds, row.owner) == ("total", START_NS + 2_000_000_000, ())
    assert (row.busy_ratio, row.sm_ratio, row.occupancy_ratio) == (0.97, 0.415, 0.2025)
    assert (row.tensor_ratio, row.dram_ratio) == (0.125, 0.77)
    assert (row.memory_total_bytes, row.memory_used_bytes) == (80 * GIB, 60 * GIB)
    assert row.memory_reserved_bytes == GIB // 2
    assert (row.power_watts, row.power_instant_watts, row.power_limit_watts) == (412.345, 498.0, 700.0)
    assert row.energy_millijoules == 55_491_669_881
    assert (row.sm_megahertz, row.memory_megahertz, row.performance_state) == (1755, 2619, 0)
    assert (row.temperature_celsius, row.memory_temperature_celsius, row.temperature_margin_celsius) == (61, 71, 26)
    assert (row.throttle_bits, row.throttle_power_nanoseconds, row.throttle_thermal_nanoseconds) == (4, 1000, 2000)
    assert row.throttle_software_thermal_nanoseconds == 3000
    assert (row.throttle_hardware_thermal_nanoseconds, row.throttle_power_brake_nanoseconds) == (4000, 5000)
    assert (row.ecc_corrected_volatile_errors, row.ecc_uncorrected_volatile_errors) == (5, 6)
    assert (row.ecc_corrected_aggregate_errors, row.ecc_uncorrected_aggregate_errors) == (7, 8)
    assert (row.remapped_corrected_rows, row.remapped_uncorrected_rows) == (2, 1)
    assert (row.remap_is_pending, row.remap_has_failed, row.retired_pages) == (True, False, 3)
    assert (row.pcie_tx_bytes, row.pcie_rx_bytes, row.pcie_replay_events) == (100, 200, 9)
    assert (row.nvlink_tx_bytes, row.nvlink_rx_bytes) == (11 * 1024, 12 * 1024)
    assert (row.recovery_action, row.processes) == ("none", ())


def test_what_a_driver_has_only_by_a_call_of_its_own_is_asked_there(watched: Watched) -> None:
    row = watched.rows()[uuid(0)]
    assert (row.ecc_corrected_volatile_errors, row.ecc_uncorrected_volatile_errors) == (3, 0)
    assert (row.ecc_corrected_aggregate_errors, row.ecc_uncorrected_aggregate_errors) == (12, 1)
    assert row.pcie_replay_events == 7
    assert (row.pcie_tx_bytes, row.nvlink_tx_bytes, row.recovery_action, row.retired_pages) == (None,) * 4


def test_activity_is_unknown_before_there_are_two_samples(watched: Watched) -> None:
    assert watched.rows()[uuid(0)].sm_ratio is None
    assert watched.rows()[uuid(0)].sm_ratio == 0.415
    assert watched.rows(0.05)[uuid(0)].sm_ratio is None, "too close to the sample before, and nobody waits"
    assert watched.rows(0.1)[uuid(0)].sm_ratio == 0.415


def test_a_meter_that_could_not_be_begun_is_tried_again(machine: Machine, watched: Watched) -> None:
    machine.change({"*.gpm_alloc": 0})
    for _ in range(2):
        watched.visit()
    machine.change({"*.gpm_alloc": None})
    assert {watched.rows()[uuid(0)].sm_ratio for _ in range(14)} == {None}
    assert [watched.rows()[uuid(0)].sm_ratio for _ in range(2)] == [None, 0.415], "begun after the next slow visit"


def test_a_visit_takes_the_light_set_and_every_fifteenth_the_rest(machine: Machine, watched: Watched) -> None:
    for _ in range(30):
        watched.visit()
    light = {machine.asked(f"0.{key}") for key in ("util_gpu", "mem_used", "power_mw", "energy_mj", "clock1")}
    assert light - {machine.asked("0.mem_used")} == {30}
    assert {machine.asked(f"0.{key}") for key in ("name", "temp_c", "margin_c", "remapped", "pstate", "clock2")} == {2}
    assert machine.asked("*.driver") == 2 * 2
    machine.change({"0.temp_c": 70, "0.power_mw": 100_000})
    assert [watched.rows()[uuid(0)].temperature_celsius for _ in range(2)] == [70, 70]
    machine.change({"0.temp_c": 80, "0.power_mw": 200_000})
    row = watched.rows()[uuid(0)]
    assert (row.temperature_celsius, row.power_watts) == (70, 200.0), "the last slow value stands"


def test_what_is_not_supported_is_asked_once(machine: Machine, watched: Watched) -> None:
    machine.change({"0.margin_c": None, "0.energy_mj": None, "1.gpm": "!3"})
    for _ in range(31):
        rows = watched.rows()
    assert rows[uuid(0)].temperature_margin_celsius is None
    assert rows[uuid(0)].energy_millijoules is None
    assert (rows[uuid(1)].sm_ratio, rows[uuid(1)].busy_ratio) == (None, 0.97)
    assert [machine.asked(key) for key in ("0.margin_c", "0.energy_mj", "1.gpm")] == [1, 1, 1]


@pytest.mark.parametrize("percent", [4294967295, 808334905, 1980, 10_000_000_000])
def test_dcgm_199_geopm_4028_an_impossible_utilisation_is_refused(
    machine: Machine, watched: Watched, percent: int
) -> None:
    machine.change({"0.util_gpu": percent})
    reading = watched.visit()
    hurt, well = reading.samples
    assert (hurt.busy_ratio, well.busy_ratio) == (None, 0.97)
    reason = "blank" if percent == 2**32 - 1 else "range"
    assert reading.rejected == (Rejected(reason, 1),)
    assert hurt.quality == (() if reason == "blank" else ("rejected",))
    machine.change({"0.util_gpu": 50})
    assert watched.rows()[uuid(0)].busy_ratio == 0.5


def test_gpu_monitoring_tools_92_blanks_are_unknown(machine: Machine, watched: Watched) -> None:
    machine.change({"0.power_mw": 2**32 - 1, "0.energy_mj": 2**64 - 1, "0.mem_used": 2**64 - 1})
    reading = watched.visit()
    row = reading.samples[0]
    assert (row.power_watts, row.energy_millijoules, row.memory_used_bytes) == (None, None, None)
    assert reading.rejected == (Rejected("blank", 3),)


@pytest.mark.parametrize(
    ("power_mw", "sm", "flags", "ratio"),
    [(412_345, 0, ("profiling_stuck",), None), (70_000, 0, (), 0.0), (412_345, 1, (), 0.01)],
    ids=["stuck", "at rest, so not stuck", "a trace of work"],
)
def test_dcgm_303_profiling_at_0_while_the_device_works(
    machine: Machine, watched: Watched, power_mw: int, sm: int, flags: tuple[str, ...], ratio: float | None
) -> None:
    zeros = {f"0.gpm{number}": 0 for number in (3, 5, 10)}
    machine.change({"0.util_gpu": 100, "0.power_mw": power_mw, "0.gpm2": sm, **zeros})
    watched.visit()
    row = watched.rows()[uuid(0)]
    assert (row.quality, row.sm_ratio, row.dram_ratio) == (flags, ratio, None if flags else 0.0)


def test_dcgm_exporter_164_a_meter_that_stands_still_is_stale(machine: Machine, watched: Watched) -> None:
    flags = [watched.rows()[uuid(0)].quality for _ in range(6)]
    assert flags == [(), (), (), (), ("stale",), ("stale",)]
    machine.change({"0.energy_mj": 55_491_669_882})
    assert watched.rows()[uuid(0)].quality == ()
    machine.change({"1.power_mw": 0})
    assert watched.rows()[uuid(1)].quality == (), "what draws nothing needs no energy"


def test_device_metrics_exporter_139_power_stands_beside_a_phantom_utilisation(
    machine: Machine, watched: Watched
) -> None:
    """A device at rest that claims 13 %: the row holds what tells the truth, so nobody has to trust one number."""
    machine.change({"0.util_gpu": 13, "0.power_mw": 70_000} | {f"0.gpm{number}": 0 for number in (2, 3, 5, 10)})
    watched.visit()
    row = watched.rows()[uuid(0)]
    assert (row.busy_ratio, row.sm_ratio, row.power_watts) == (0.13, 0.0, 70.0)


def test_nvitop_208_unified_memory_is_unknown_and_the_rest_is_read(machine: Machine, watched: Watched) -> None:
    machine.change({"0.mem_total": None})
    row = watched.rows()[uuid(0)]
    assert (row.memory_total_bytes, row.memory_used_bytes) == (None, None)
    assert (row.power_watts, row.state, row.processes) == (412.345, "ok", ())


def test_kempnerpulse_23_no_variable_hides_a_device(
    machine: Machine, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-0-not-a-number")
    assert list(watched.rows()) == [uuid(0), uuid(1)]


def test_processes_with_their_memory_and_share(machine: Machine, watched: Watched) -> None:
    now_us = START_NS // 1000
    machine.change({
        "0.procs": "4242:1000 4243:-",
        "0.graphics_procs": "4244:5 4242:1000",
        "0.putil": f"4242:{now_us - 60_000_000}:99:0:0:0 4242:{now_us}:40:0:0:0 4242:{now_us + 1}:60:0:0:0",
    })  # fmt: skip
    assert watched.rows()[uuid(0)].processes == (
        DeviceProcess(4242, 1000, 0.5),
        DeviceProcess(4243, None, 0.0),
        DeviceProcess(4244, 5, 0.0),
    )


def test_nvtop_110_a_sample_of_the_far_future_does_not_hide_those_that_follow(
    machine: Machine, watched: Watched
) -> None:
    """Its time would be the one to go on from, and no process would seem to use anything ever again."""
    now_us = START_NS // 1000
    machine.change({"0.procs": "4242:1000", "0.putil": f"4242:{now_us}:40 4242:{2**62}:90"})
    reading = watched.visit()
    assert reading.samples[0].processes == (DeviceProcess(4242, 1000, 0.4),)
    assert Rejected("process", 1) in reading.rejected
    machine.change({"0.putil": f"4242:{now_us + 15_000_000}:60"})
    for _ in range(15):
        rows = watched.rows()
    assert rows[uuid(0)].processes == (DeviceProcess(4242, 1000, 0.6),)


def test_gpu_metrics_agent_37_no_sample_is_no_use_and_not_unknown(machine: Machine, watched: Watched) -> None:
    machine.change({"0.procs": "4242:1000", "0.putil_first": "!6", "0.putil": ""})
    assert watched.rows()[uuid(0)].processes == (DeviceProcess(4242, 1000, 0.0),)


def test_nvitop_106_a_process_that_ended_is_gone(machine: Machine, watched: Watched) -> None:
    machine.change({"0.procs": "4242:1000"})
    assert len(watched.rows()[uuid(0)].processes or ()) == 1
    machine.change({"0.procs": None})
    assert watched.rows()[uuid(0)].processes == (DeviceProcess(4242, 1000),), "stands until it is asked for again"
    for _ in range(14):
        rows = watched.rows()
    assert rows[uuid(0)].processes == ()


def test_nvtop_110_rows_of_processes_that_the_host_does_not_know_are_noise(machine: Machine) -> None:
    machine.describe({**dgx(1), "0.procs": f"{os.getpid()}:1000 4194303:7"})
    watched = Watched(host_pids=True)
    reading = watched.visit()
    assert reading.samples[0].processes == (DeviceProcess(os.getpid(), 1000),)
    assert reading.rejected == (Rejected("process", 1),)
    watched.nvml.close()


def test_pynvml_50_records_of_another_size_are_not_believed(machine: Machine, watched: Watched) -> None:
    machine.change({"0.procs": "4242:1000000 4243:2000000", "*.process_bytes": 32})
    processes = watched.rows()[uuid(0)].processes or ()
    assert [(each.pid, each.memory_bytes) for each in processes] == [(4242, 1_000_000), (4243, 2_000_000)]


def test_an_old_driver_without_names_for_new_calls(machine: Machine) -> None:
    machine.change({"0.throttle_reasons": "0x8", **activity("0")})
    code = """
import json
from collectors.nvml.collector import Nvml
nvml = Nvml()
rows = [nvml.collect().samples[0] for _ in range(2)]
nvml.close()
print(json.dumps([[r.state, r.throttle_bits, r.sm_ratio, r.memory_used_bytes, r.temperature_celsius] for r in rows]))
"""
    lacking = ("MEMORY_V2", "EVENT_REASONS", "TEMPERATURE_V", "PROCESSES_V3", "GPM")
    row = ["ok", 8, None, 60 * GIB + GIB // 2, 61]
    assert machine.elsewhere(code, *lacking) == [row, row]


def test_the_registry_makes_it_with_its_options(machine: Machine) -> None:
    machine.describe(dgx(1))
    made = make_collector("nvml", {"slow_every": 1, "host_pids": True})
    assert isinstance(made, Nvml)
    assert len(made.collect().samples) == 1
    made.close()
    made.close()


def test_any_call_can_hang(machine: Machine) -> None:
    """The stand-in can hang in every call that the collector makes, which is what the guard's tests rest on."""
    keys = ("*.init", "*.event_set", "*.count", "*.wait", "0.ALL", "*.gpm_alloc", "*.gpm_metrics", "*.shutdown")
    for key in keys:
        machine.describe({**dgx(1), f"{key}.sleep_ms": 30})
        watched = Watched()
        begun = time.monotonic()
        watched.visit()
        watched.visit()
        watched.nvml.close()
        assert time.monotonic() - begun >= 0.03, key
