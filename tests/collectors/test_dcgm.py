"""One page of dcgm-exporter. Tests named after a public issue hold what that issue's page must yield."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.dcgm.collector import Dcgm
from collectors.dcgm.fields import FIELDS
from collectors.exposition import PageError
from collectors.samples import COUNTERS, Owner
from tests.collectors.dcgm_pages import FIXTURES, UUID, counts, only, page, recorded

MIB = 2**20


def test_a_whole_node_is_read() -> None:
    reading = recorded("h100x8-k8s")
    assert [sample.slot for sample in reading.samples] == list("01234567")
    assert {(sample.kind, sample.node, sample.state, sample.counters) for sample in reading.samples} == {
        ("gpu", "gpu-node-01", "ok", "total")
    }
    assert reading.rejected == ()
    first = reading.samples[0]
    assert (first.uuid, first.parent_uuid) == (UUID, None)
    assert first.owner == (Owner(namespace="team-a", pod="llama70b-0", container="vllm"),)
    assert (first.busy_ratio, first.sm_ratio, first.tensor_ratio, first.dram_ratio) == (0.98, 0.41, 0.12, 0.72)
    assert (first.power_watts, first.energy_millijoules) == (412.336, 55491669881)
    assert (first.memory_used_bytes, first.memory_reserved_bytes) == (74211 * MIB, 600 * MIB)
    assert first.memory_total_bytes == (6748 + 74211 + 600) * MIB
    assert (first.remap_has_failed, first.remap_is_pending, first.retired_pages) == (False, None, None)
    assert first.quality == ()
    assert reading.samples[7].owner == ()


def test_what_a_page_does_not_say_is_none_and_never_0() -> None:
    known = {name for name, value in asdict(only(page("DCGM_FI_DEV_GPU_UTIL{} 0"))).items() if value not in (None, ())}
    assert known == {"kind", "uuid", "slot", "state", "counters", "vendor", "busy_ratio"}


def test_a_page_of_another_program_is_refused() -> None:
    with pytest.raises(PageError, match=r"^page: holds metrics, but none of dcgm-exporter$"):
        Dcgm("page").read('vllm:num_requests_running{engine="0"} 3\n')


def test_a_page_without_known_fields_is_a_node_without_readings() -> None:
    assert page("DCGM_FI_DEV_NVSWITCH_TEMPERATURE{} 40").samples == ()


def test_a_series_without_a_device_is_refused() -> None:
    reading = Dcgm("page").read(f'DCGM_FI_DEV_GPU_UTIL{{gpu="0"}} 1\nDCGM_FI_DEV_GPU_UTIL{{UUID="{UUID}"}} 2\n')
    assert (only(reading).busy_ratio, counts(reading)) == (0.02, {"no_uuid": 1})


def test_dcgm_exporter_502_counts_of_a_window_are_presence_only() -> None:
    """Declared a counter, it is the number of samples in a window: 2 of Xid 63 are not two Xids."""
    first, second = recorded("exp-xid").samples
    assert (first.xid_codes, second.xid_codes) == ((), (63, 94))


def test_dcgm_199_impossible_utilisation_is_refused_not_clamped() -> None:
    """808334905 and 1980 per cent are no sentinels; the mean of what is left is 47, not 100."""
    reading = recorded("sentinels")
    assert [sample.busy_ratio for sample in reading.samples] == [None, None, None, 0.47]
    assert [sample.quality for sample in reading.samples] == [(), ("rejected",), ("rejected",), ()]
    assert counts(reading) == {"blank": 6, "not_supported": 1, "range": 2}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("140737488355328.000000", "blank"),
        ("140737488355329.000000", "not_found"),
        ("140737488355330.000000", "not_supported"),
        ("140737488355331.000000", "no_permission"),
        ("2147483632", "blank"),
        ("2147483635", "no_permission"),
        ("4294967295", "blank"),
        ("18446744073709551615", "blank"),
        ("-1", "range"),
        ("NaN", "not_finite"),
        ("+Inf", "not_finite"),
    ],
)
def test_slurm_job_exporter_30_blanks_are_no_data(value: str, reason: str) -> None:
    reading = page(f"DCGM_FI_DEV_POWER_USAGE{{}} {value}", "DCGM_FI_DEV_GPU_UTIL{} 5")
    assert (only(reading).power_watts, counts(reading)) == (None, {reason: 1})


def test_gpu_monitoring_tools_92_blank_temperature_is_none() -> None:
    reading = page("DCGM_FI_DEV_MEMORY_TEMP{} 9223372036854775794")
    assert (only(reading).memory_temperature_celsius, counts(reading)) == (None, {"blank": 1})


def test_a_large_counter_is_not_taken_for_a_small_sentinel() -> None:
    """2147483632 mJ is two megajoules, an hour or two of work; a 64-bit blank stays a blank."""
    assert only(page("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{} 2147483632")).energy_millijoules == 2147483632
    reading = page("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{} 9223372036854775792")
    assert (only(reading).energy_millijoules, counts(reading)) == (None, {"blank": 1})


def test_dcgm_303_stuck_profiling_is_not_idle() -> None:
    sample = only(
        page(
            "DCGM_FI_DEV_GPU_UTIL{} 100",
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE{} 0.000000",
            "DCGM_FI_PROF_SM_ACTIVE{} 0.000000",
            "DCGM_FI_PROF_DRAM_ACTIVE{} 0.000000",
        )
    )
    assert (sample.busy_ratio, sample.sm_ratio, sample.dram_ratio) == (1.0, None, None)
    assert sample.quality == ("profiling_stuck",)


def test_a_device_that_is_idle_or_hardly_busy_is_not_called_stuck() -> None:
    idle = only(page("DCGM_FI_DEV_GPU_UTIL{} 0", "DCGM_FI_PROF_SM_ACTIVE{} 0.000000"))
    assert (idle.sm_ratio, idle.quality) == (0.0, ())
    hardly = only(page("DCGM_FI_DEV_GPU_UTIL{} 100", "DCGM_FI_PROF_SM_ACTIVE{} 0.007000"))
    assert (hardly.sm_ratio, hardly.quality) == (0.007, ())
    unprofiled = only(page("DCGM_FI_DEV_GPU_UTIL{} 100"))
    assert (unprofiled.sm_ratio, unprofiled.quality) == (None, ())


def test_dcgm_exporter_417_nvlink_bandwidth_is_no_counter() -> None:
    """It is declared one and goes down: a rate in MB/s, taken for nothing here."""
    declared = "# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL counter"
    sample = only(page(declared, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{} 16721", "DCGM_FI_DEV_GPU_UTIL{} 1"))
    assert (sample.nvlink_tx_bytes, sample.nvlink_rx_bytes) == (None, None)


def test_dcgm_exporter_87_pcie_rates_are_no_byte_counters() -> None:
    declared = "# TYPE DCGM_FI_PROF_PCIE_TX_BYTES counter"
    sample = only(page(declared, "DCGM_FI_PROF_PCIE_TX_BYTES{} 120034000", "DCGM_FI_DEV_GPU_UTIL{} 1"))
    assert (sample.pcie_tx_bytes, sample.pcie_rx_bytes) == (None, None)


def test_dcgm_exporter_721_pcie_rate_stuck_at_0_says_nothing() -> None:
    sample = only(page("DCGM_FI_PROF_PCIE_TX_BYTES{} 0", "DCGM_FI_PROF_PCIE_RX_BYTES{} 0", "DCGM_FI_DEV_GPU_UTIL{} 1"))
    assert (sample.pcie_tx_bytes, sample.pcie_rx_bytes) == (None, None)


def test_the_first_exporters_names_are_read() -> None:
    sample = only(recorded("old-namespace"))
    assert (sample.uuid, sample.busy_ratio, sample.energy_millijoules) == (UUID, 0.33, 55491669881)
    assert sample.owner == (Owner(namespace="team-a", pod="old-0", container="srv"),)


RENAMED = {
    "DCGM_FI_DEV_GPU_UTIL{": "DCGM_FI_DEV_GPU_UTIL_RATIO{",
    "DCGM_FI_DEV_POWER_USAGE{": "DCGM_FI_DEV_BOARD_POWER_WATTS{",
    "DCGM_FI_DEV_GPU_TEMP{": "DCGM_FI_DEV_GPU_TEMP_CELSIUS{",
    "DCGM_FI_DEV_MEMORY_TEMP{": "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS{",
    "DCGM_FI_DEV_XID_ERRORS{": "DCGM_FI_DEV_XID_ERROR{",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER{": "DCGM_FI_DEV_PCIE_REPLAY_TOTAL{",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{": "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL{",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS{": "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL{",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE{": "DCGM_FI_DEV_ROW_REMAP_FAILED{",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE{": "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO{",
    "DCGM_FI_PROF_SM_ACTIVE{": "DCGM_FI_PROF_SM_UTIL_RATIO{",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{": "DCGM_FI_PROF_TENSOR_UTIL_RATIO{",
    "DCGM_FI_PROF_DRAM_ACTIVE{": "DCGM_FI_PROF_DRAM_UTIL_RATIO{",
    "UUID=": "uuid=",
    "Hostname=": "hostname=",
}


@pytest.mark.parametrize("name", ["h100x8-k8s", "a100-mig"])
def test_dcgm_exporter_655_new_names_give_the_same_rows(name: str) -> None:
    text = (FIXTURES / f"{name}.prom").read_text()
    for old, new in RENAMED.items():
        assert old in text or name == "a100-mig"
        text = text.replace(old, new)
    assert Dcgm("page").read(text).samples == recorded(name).samples


def test_unescaped_labels_and_text_values_cost_their_line_only() -> None:
    """One good row is kept and two lines are counted, where a strict parser loses the page."""
    reading = recorded("malformed")
    assert (only(reading).slot, only(reading).power_watts) == ("1", 71.5)
    assert counts(reading) == {"bad_labels": 1, "bad_value": 1}


def test_blank_texts_in_labels_are_unknown() -> None:
    sample = only(page('DCGM_FI_DEV_GPU_UTIL{modelName="<<<NOT_SUPPORTED>>>",Hostname=""} 5'))
    assert (sample.model, sample.node) == (None, None)


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION{} 0", "ok"),
        ("DCGM_FI_DEV_GPU_RECOVERY_ACTION{} 1", "needs_reset"),
        ("DCGM_FI_DEV_GPU_RECOVERY_ACTION{} 2", "degraded"),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE{} 1", "degraded"),
        ("DCGM_FI_DEV_ROW_REMAP_PENDING{} 1", "ok"),
    ],
)
def test_the_state_follows_what_the_driver_asks_for(line: str, state: str) -> None:
    assert only(page(line)).state == state


def test_a_refused_utilisation_is_stood_in_for_by_the_engine() -> None:
    sample = only(page("DCGM_FI_DEV_GPU_UTIL{} 1980", "DCGM_FI_PROF_GR_ENGINE_ACTIVE{} 0.4"))
    assert (sample.busy_ratio, sample.quality) == (0.4, ("estimated", "rejected"))


NAMES = [f"DCGM_FI_DEV_{field.names[0]}" for field in FIELDS] + ["DCGM_EXP_XID_ERRORS_COUNT"]
LABELS = st.dictionaries(
    st.sampled_from(["GPU_I_ID", "pod", "hpc_job", "vgpu", "xid", "dra_claim_name", "dra_mig_profile", "exported_pod"]),
    st.sampled_from(["", "1", "2", "x", "<<<NULL>>>", "9" * 30, "\u0661"]),
)


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), LABELS, st.floats() | st.integers(-1, 2**64)), min_size=1, max_size=20)
)
def test_no_value_and_no_label_breaks_a_row_or_leaves_its_range(
    series: list[tuple[str, dict[str, str], float]],
) -> None:
    reading = page(*(f"{name}{{{','.join(f'{k}={v!r}' for k, v in labels.items())}}} {value}".replace("'", '"')
                     for name, labels, value in series))  # fmt: skip
    assert [sample.kind for sample in reading.samples].count("gpu") == 1
    for sample in reading.samples:
        row = asdict(sample)
        json.dumps(row, allow_nan=False)
        assert all(0 <= value <= 1 for name, value in row.items() if name.endswith("_ratio") and value is not None)
        assert all((row[name] or 0) >= 0 for name in COUNTERS)
        assert sample.kind == "gpu" or (sample.power_watts is None and sample.energy_millijoules is None)


def test_a_dated_sample_gives_its_time() -> None:
    assert only(page("DCGM_FI_DEV_GPU_UTIL{} 5 1785542000123")).ts_nanoseconds == 1785542000123_000_000


def test_the_second_page_is_read_like_the_first() -> None:
    exporter = Dcgm(str(FIXTURES / "a100-mig.prom"))
    assert exporter.collect() == exporter.collect()
