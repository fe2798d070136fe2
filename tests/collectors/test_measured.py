"""Series of devices, holders and faults: base units, nothing unknown, no series twice whatever comes in."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.faults.xid import PAGING_XIDS
from collectors.rows.measured import measured_devices, measured_faults, measured_holders, throttle_reasons
from collectors.samples import DeviceSample, Held
from fleet.catalogue_device import DEVICE_METRICS
from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.measurement import Measurement

RICH = DeviceSample(
    "gpu", "GPU-a", slot="3", node="ignored", state="degraded", ts_nanoseconds=1_785_542_000_500_000_000,
    interval_seconds=1.0, driver_epoch=2, vendor="nvidia", model="NVIDIA H100", driver="580.1",
    pci_bus_id="00000000:1B:00.0", architecture="hopper", serial="S1", busy_ratio=0.5, sm_ratio=0.4,
    occupancy_ratio=0.3, tensor_ratio=0.2, dram_ratio=0.1, memory_total_bytes=80 << 30, memory_used_bytes=3 << 30,
    memory_reserved_bytes=1 << 29, power_watts=250.5, power_instant_watts=260.0, power_limit_watts=700.0,
    energy_millijoules=12_500, sm_megahertz=1980, memory_megahertz=2619, performance_state=0, temperature_celsius=61,
    memory_temperature_celsius=70, temperature_margin_celsius=26, throttle_bits=0x4 | 0x40,
    throttle_power_nanoseconds=1_500_000_000, throttle_thermal_nanoseconds=0,
    throttle_software_thermal_nanoseconds=1, throttle_hardware_thermal_nanoseconds=2,
    throttle_power_brake_nanoseconds=3, ecc_corrected_volatile_errors=1, ecc_uncorrected_volatile_errors=2,
    ecc_corrected_aggregate_errors=3, ecc_uncorrected_aggregate_errors=4, remapped_corrected_rows=5,
    remapped_uncorrected_rows=6, remap_is_pending=True, remap_has_failed=True, retired_pages=7, pcie_tx_bytes=8,
    pcie_rx_bytes=9, nvlink_tx_bytes=10, nvlink_rx_bytes=11, pcie_replay_events=12, recovery_action="drain_and_reset",
    quality=("estimated", "stale"),
)  # fmt: skip


def held(pod: str | None = None, millionths: int = 500_000, **values: Any) -> Held:
    known: dict[str, Any] = {"device": "GPU-a", "owner_kind": "pod", "source": "kubelet", "confidence": "exact"}
    return Held(gpu_millionths=millionths, pod=pod, **(known | values))


def page(measured: Iterable[Measurement]) -> dict[tuple[str, tuple[str, ...]], float]:
    """Values by short name and labels behind node and uuid; two of the same series are a failure."""
    found: dict[tuple[str, tuple[str, ...]], float] = {}
    for one in measured:
        series = (one.metric.name.removeprefix("gputally_device_"), one.labels[2:])
        assert series not in found
        found[series] = one.value
    return found


def test_values_come_in_base_units() -> None:
    found = page(measured_devices("n1", [RICH]))
    plain = {name: value for (name, labels), value in found.items() if not labels}
    assert plain == pytest.approx({
        "sample_interval_seconds": 1, "last_sample_timestamp_seconds": 1_785_542_000.5, "reset_events_total": 2,
        "busy_ratio": 0.5, "sm_ratio": 0.4, "occupancy_ratio": 0.3, "tensor_ratio": 0.2, "dram_ratio": 0.1,
        "memory_total_bytes": 80 << 30, "memory_used_bytes": 3 << 30, "memory_reserved_bytes": 1 << 29,
        "power_watts": 250.5, "power_instant_watts": 260, "power_limit_watts": 700, "energy_joules_total": 12.5,
        "sm_clock_hertz": 1.98e9, "memory_clock_hertz": 2.619e9, "temperature_celsius": 61,
        "memory_temperature_celsius": 70, "temperature_margin_celsius": 26, "retired_pages": 7,
        "pcie_replay_events_total": 12,
    })  # fmt: skip
    assert found["throttle_seconds_total", ("power",)] == 1.5
    assert found["ecc_errors_total", ("uncorrected", "aggregate")] == 4
    assert found["remapped_rows", ("uncorrected",)] == 6
    assert (found["pcie_bytes_total", ("rx",)], found["nvlink_bytes_total", ("tx",)]) == (9, 10)


def test_states_are_in_labels() -> None:
    found = page(measured_devices("n1", [RICH]))
    infos = {(name, *labels) for (name, labels), value in found.items() if name.endswith("info") and value == 1}
    assert infos == {
        ("info", "", "3", "nvidia", "gpu", "NVIDIA H100", "hopper", "580.1", "00000000:1B:00.0", "S1"),
        ("state_info", "degraded"), ("quality_info", "estimated"), ("quality_info", "stale"),
        ("performance_state_info", "P0"), ("recovery_action_info", "drain_and_reset"),
        ("row_remap_info", "pending"), ("row_remap_info", "failed"),
        ("throttle_info", "software_power_cap"), ("throttle_info", "hardware_thermal"),
    }  # fmt: skip


def test_every_metric_of_the_catalogue_is_filled() -> None:
    """A metric that nobody fills would be a promise: its name would stand in the difference."""
    measured = [
        *measured_devices("n1", [RICH]),
        *measured_holders("n1", [held("p")]),
        *measured_faults("n1", {}, [RICH]),
    ]
    assert {metric.name for metric in DEVICE_METRICS} - {one.metric.name for one in measured} == set()
    assert {one.labels[:2] for one in measured} == {("n1", "GPU-a")}


def test_what_is_not_known_is_no_series() -> None:
    lost = DeviceSample("gpu", "GPU-a", state="lost")
    assert {name for name, _ in page(measured_devices("n1", [lost]))} == {"info", "state_info"}
    assert list(measured_devices("n1", [DeviceSample("gpu", None, busy_ratio=1.0)])) == []


def test_what_is_no_number_is_no_series() -> None:
    odd = DeviceSample("gpu", "GPU-a", busy_ratio=math.nan, power_watts=math.inf, sm_ratio=-math.inf)
    assert {name for name, _ in page(measured_devices("n1", [odd]))} == {"info", "state_info"}


def test_dcgm_exporter_317_power_and_energy_stand_on_the_board_once() -> None:
    part = DeviceSample("mig", None, parent_uuid="GPU-a", slot="7", power_watts=252.6, energy_millijoules=9, sm_ratio=1)
    measured = list(measured_devices("n1", [RICH, part], estimated_millijoules={"GPU-a/gi7": 5}))
    once = {"gputally_device_power_watts", "gputally_device_energy_joules_total", "gputally_device_power_limit_watts"}
    assert [one.labels[1] for one in measured if one.metric.name in once] == ["GPU-a"] * 3
    assert ("sm_ratio", "GPU-a/gi7") in {(one.metric.name[16:], one.labels[1]) for one in measured}


def test_what_the_windows_know_fills_what_a_sample_cannot() -> None:
    bare = DeviceSample("gpu", "GPU-a", power_watts=10)
    found = page(measured_devices("n1", [bare], epochs={"GPU-a": 3}, estimated_millijoules={"GPU-a": 2500}))
    assert (found["reset_events_total", ()], found["energy_joules_total", ()]) == (3, 2.5)


def test_throttle_bits_have_the_drivers_names() -> None:
    assert throttle_reasons(0x1 | 0x8 | 0x20 | 0x80 | 0x400) == (
        "idle", "hardware_slowdown", "software_thermal", "hardware_power_brake", "reliability",
    )  # fmt: skip
    assert throttle_reasons(0x800) == ("bit_11",)
    assert throttle_reasons(0) == ()


def test_dcgm_exporter_582_shares_of_one_device_add_up() -> None:
    """Three replicas of one GPU, two of them of one pod."""
    shares = [held("a", 333_333, container="x"), held("a", 333_333, container="y"), held("b", 333_333)]
    found = page(measured_holders("n1", shares))
    assert found == {
        ("held_ratio", ("pod", "", "", "a", "kubelet")): 0.666666,
        ("held_ratio", ("pod", "", "", "b", "kubelet")): 0.333333,
    }


def test_holders_without_a_pod_are_named_by_what_is_known() -> None:
    job = held(owner_kind="job", job_id="4711", user_name="ada", source="cgroup")
    found = page(measured_holders("n1", [job, held(pod_uid="u-1", namespace="ns", workload="w")]))
    assert {labels for _, labels in found} == {
        ("job", "", "4711", "", "cgroup"),
        ("pod", "ns", "w", "u-1", "kubelet"),
    }


def test_faults_that_page_start_at_zero_on_boards() -> None:
    part = DeviceSample("mig", "MIG-1", parent_uuid="GPU-a", slot="1")
    counts = {
        ("GPU-a", "xid", 79, "critical"): 2,
        ("GPU-a", "xid", 31, "warn"): 1,
        ("0000:01", "sxid", 20034, "warn"): 1,
    }
    measured = list(measured_faults("n1", counts, [RICH, part], paging_xids=[79, 48]))
    assert {one.labels[1:]: one.value for one in measured} == {
        ("GPU-a", "xid", "79", "critical"): 2,
        ("GPU-a", "xid", "48", "critical"): 0,
        ("GPU-a", "xid", "31", "warn"): 1,
        ("0000:01", "sxid", "20034", "warn"): 1,
    }
    assert len(page(measured_faults("n1", {}, [RICH]))) == len(PAGING_XIDS) > 0


def test_hostile_text_is_bounded_and_of_one_line() -> None:
    evil = DeviceSample("gpu", "GPU-a", model='x"\n\x00' * 900, serial="\ud800\u202e")
    info = next(iter(measured_devices("n1\n", [evil])))
    assert info.labels[0] == "n1\\n"
    assert all(len(label) <= TEXT_LIMIT and label.isprintable() for label in info.labels)


TEXT = st.none() | st.text(max_size=4) | st.sampled_from(["a" * 256, "a" * 300, "\n", "\\n"])
NUMBER = st.none() | st.floats() | st.integers(-(2**65), 2**65)
SAMPLES = st.builds(
    DeviceSample, st.sampled_from(["gpu", "mig"]), TEXT, parent_uuid=TEXT, slot=TEXT, model=TEXT, recovery_action=TEXT,
    busy_ratio=NUMBER, energy_millijoules=NUMBER, throttle_bits=st.none() | st.integers(-5, 2**65),
    quality=st.lists(st.sampled_from(["stale", "reset"])).map(tuple), power_watts=NUMBER,
)  # fmt: skip
HELD = st.builds(
    Held, device=st.sampled_from(["a", "b", "a" * 256, "a" * 300]), gpu_millionths=st.integers(0, 10**6),
    owner_kind=st.sampled_from(["pod", "job"]), source=st.just("s"), confidence=st.just("exact"), namespace=TEXT,
    workload=TEXT, pod=TEXT, pod_uid=TEXT, job_id=TEXT, user_name=TEXT,
)  # fmt: skip
COUNTS = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", "a" * 256, "a" * 300]), st.just("xid"), st.integers(60, 80), TEXT.map(str)),
    st.integers(0, 9),
)


@given(st.text(max_size=300), st.lists(SAMPLES, max_size=5), st.lists(HELD, max_size=6), COUNTS)
def test_no_series_is_told_twice_whatever_comes(
    node: str, samples: list[DeviceSample], shares: list[Held], counts: dict[tuple[str, str, int, str], int]
) -> None:
    measured = [
        *measured_devices(node, samples),
        *measured_holders(node, shares),
        *measured_faults(node, counts, samples),
    ]
    series = [(one.metric.name, one.labels) for one in measured]
    assert len(set(series)) == len(series)
    assert all(math.isfinite(one.value) for one in measured)
    assert all(
        len(label) <= TEXT_LIMIT and (not label or label.isprintable()) for _, labels in series for label in labels
    )
    ratios = [one.value for one in measured if one.metric.name == "gputally_device_held_ratio"]
    assert sum(ratios) == pytest.approx(sum(share.gpu_millionths for share in shares) / 1e6)
