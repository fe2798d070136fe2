"""Which values are believed: sentinels, ranges, signs, and fields that succeed one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collectors.nvml.fields import Field
from collectors.nvml.port import NvmlPort
from collectors.nvml.values import DeviceLostError, Reading, Reason, legacy_mig_id
from tests.nvml_shim.machine import GIB, uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.nvml.port import NvmlDevice
    from tests.nvml_shim.machine import Machine


@pytest.fixture
def device(machine: Machine) -> Iterator[NvmlDevice]:
    with NvmlPort.open() as port:
        yield port.devices()[0]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("0.power_mw", 2**32 - 1, Reason.SENTINEL),
        ("0.power_mw", 808_334_905, Reason.OUT_OF_RANGE),
        ("0.energy_mj", 2**64 - 1, Reason.SENTINEL),
        ("0.temp_c", 151, Reason.OUT_OF_RANGE),
        ("0.pstate", 32, Reason.SENTINEL),
        ("0.clock1", 2**32 - 1, Reason.SENTINEL),
        ("0.util_gpu", 101, Reason.OUT_OF_RANGE),
        ("0.util_gpu", 808_334_905, Reason.OUT_OF_RANGE),
        ("0.util_gpu", 2**32 - 1, Reason.SENTINEL),
        ("0.event_reasons", 2**64 - 1, Reason.SENTINEL),
        ("0.mem_used", 2**64 - 1, Reason.SENTINEL),
        ("0.mem_used", 81 * GIB, Reason.OUT_OF_RANGE),
        ("0.mem_total", 0, Reason.OUT_OF_RANGE),
        ("0.remapped", f"{2**32 - 1} 0 0 0", Reason.SENTINEL),
        ("0.ecc_corrected_volatile", 2**64 - 1, Reason.SENTINEL),
    ],
)
def test_what_cannot_be_true_is_refused_and_not_clamped(
    machine: Machine, device: NvmlDevice, key: str, value: object, reason: Reason
) -> None:
    machine.change({key: value})
    readings = {
        "0.power_mw": device.power_mw,
        "0.energy_mj": device.energy_mj,
        "0.temp_c": device.temperature_celsius,
        "0.pstate": device.performance_state,
        "0.clock1": lambda: device.clock_mhz("sm"),
        "0.util_gpu": lambda: device.utilization().gpu_percent,
        "0.event_reasons": device.throttle_bits,
        "0.mem_used": device.memory,
        "0.mem_total": device.memory,
        "0.remapped": device.remapped_rows,
        "0.ecc_corrected_volatile": lambda: device.ecc_errors(corrected=True, aggregate=False),
    }
    assert readings[key]() == Reading(None, reason)


def test_dcgm_199_garbage_utilization_leaves_the_other_half_alone(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.util_gpu": 808_334_905})
    assert device.utilization().memory_percent == Reading(41)


def test_temperature_below_zero(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.temp_c": -5, "0.margin_c": -3})
    assert device.temperature_celsius() == Reading(-5)
    assert device.temperature_margin_celsius() == Reading(-3)


def test_nvtop_411_a_device_without_memory_of_its_own(machine: Machine, device: NvmlDevice) -> None:
    """GB10 and its like share the host's memory: NVML does not support the question."""
    machine.change({"0.mem_total": None, "0.mem_used": None})
    assert device.memory() == Reading(None, Reason.NOT_SUPPORTED, 3)
    assert device.power_mw().value == 412_345


def test_a_counter_that_starts_again_is_passed_on_as_it_is(machine: Machine, device: NvmlDevice) -> None:
    """Whether that is a new epoch is judged where the earlier value is known."""
    assert device.energy_mj() == Reading(55_491_669_881)
    machine.change({"0.energy_mj": 12, "0.fi83": 12})
    assert device.energy_mj() == Reading(12)
    assert device.fields([Field.ENERGY_MJ]) == {Field.ENERGY_MJ: Reading(12)}


def test_each_field_has_its_own_success(machine: Machine, device: NvmlDevice) -> None:
    machine.change(
        {
            "0.fi83": 55_491_669_881,
            "0.fi82": "1:4294967291",
            "0.fi186": "1:408000",
            "0.fi185": "!3",
            "0.fi94": "!4",
            "0.fi197": f"3:{2**64 - 1}",
            "0.fi198": "6:12",
            "0.fi3": "5:-1",
            "0.fi4": "0:2.0",
            "0.fi5": "4:17",
            "0.fi6": "9:17",
            "0.fi138.s4294967295": "3:4",
            "0.fi230": f"1:{2**32 - 1}",
        }
    )
    found = device.fields(Field)
    assert set(found) == set(Field)
    assert found[Field.ENERGY_MJ] == Reading(55_491_669_881)
    assert found[Field.MEMORY_TEMPERATURE_CELSIUS] == Reading(-5)
    assert found[Field.POWER_INSTANT_MW] == Reading(408_000)
    assert found[Field.POWER_AVERAGE_MW] == Reading(None, Reason.NOT_SUPPORTED, 3)
    assert found[Field.PCIE_REPLAY_EVENTS] == Reading(None, Reason.NO_PERMISSION, 4)
    assert found[Field.PCIE_TX_BYTES] == Reading(None, Reason.SENTINEL)
    assert found[Field.PCIE_RX_BYTES] == Reading(12)
    assert found[Field.ECC_CORRECTED_VOLATILE_ERRORS] == Reading(None, Reason.OUT_OF_RANGE)
    assert found[Field.ECC_UNCORRECTED_VOLATILE_ERRORS] == Reading(2)
    assert found[Field.ECC_CORRECTED_AGGREGATE_ERRORS] == Reading(17)
    assert found[Field.ECC_UNCORRECTED_AGGREGATE_ERRORS] == Reading(None, Reason.UNKNOWN)
    assert found[Field.NVLINK_TX_BYTES] == Reading(4096)
    assert found[Field.RECOVERY_ACTION_CODE] == Reading(None, Reason.SENTINEL)
    assert device.fields(Field) == found
    assert (machine.asked("0.fi185"), machine.asked("0.fi94")) == (1, 2)


def test_a_lost_device_inside_a_field(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.fi83": "!15"})
    with pytest.raises(DeviceLostError):
        device.fields([Field.ENERGY_MJ])


def test_the_call_for_fields_may_fail_whole(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.fields": "!999"})
    assert device.fields([Field.ENERGY_MJ]) == {Field.ENERGY_MJ: Reading(None, Reason.UNKNOWN, 999)}


def test_legacy_mig_ids() -> None:
    assert legacy_mig_id(f"MIG-{uuid(3)}/7/0") == (uuid(3), 7, 0)
    assert legacy_mig_id("MIG-aaaaaaaa-0000-0000-0000-000000000001") is None
    assert legacy_mig_id(uuid(3)) is None


@pytest.mark.parametrize(("number", "expected"), [(99, Reading("99")), (2**32 - 1, Reading(None, Reason.SENTINEL))])
def test_an_architecture_without_a_name(
    machine: Machine, device: NvmlDevice, number: int, expected: Reading[str]
) -> None:
    machine.change({"0.architecture": number})
    assert device.identity().architecture == expected


def test_a_name_that_is_not_text(machine: Machine, device: NvmlDevice) -> None:
    machine.change({"0.name": "NVIDIA \udcf8\udcff"})
    assert device.identity().name == Reading(None, Reason.OUT_OF_RANGE)
