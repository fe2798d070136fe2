"""Traps 29 to 33 of serving engines' metrics: what is counted twice, load that one gauge hides, labels without end."""

from __future__ import annotations

import gc

import pytest

from collectors.exposition import PageError, Parser, Series
from collectors.serving.engines import ENGINES
from collectors.serving.page import SERIES_LIMIT
from collectors.serving.servers import server_of
from collectors.serving.windows import EngineWindows
from fleet.telemetry import EngineHistogramRow, EngineWindowRow
from tests.collectors.serving.engine_pages import counts, walk
from tests.collectors.serving.engines.pages_at_hand import page_of, read, row, rows


def remembered_series() -> int:
    """Series that are in memory now."""
    return sum(isinstance(one, Series) for one in gc.get_objects())


def test_trap_29_an_ensemble_gets_no_time_that_its_steps_have() -> None:
    """Parent and steps all count; only those on a device are given engine time, so nothing is given twice."""
    found = {one["model"]: one for one in rows("triton", page_of("triton/core-2.71.0.prom"))}
    assert "engine_busy_seconds" not in found["ensemble_kyc"]
    infer = {
        model: one["engine_busy_seconds"]["compute_infer"] for model, one in found.items() if model != "ensemble_kyc"
    }
    assert infer == {"ocr_det": pytest.approx(273.9702), "ocr_rec": pytest.approx(933.4311)}


def test_trap_29_a_sum_over_models_counts_each_request_once() -> None:
    """An ensemble's requests are those of its steps: they stand in the rows of models that compute, and only there."""
    for name, ensemble, computed in (
        ("triton/core-2.71.0.prom", "ensemble_kyc", {"ocr_det": 9102, "ocr_rec": 31011}),
        ("triton/trtllm-backend-1.x.prom", "ensemble", {"tensorrt_llm": 2011}),
    ):
        found = {one["model"]: one for one in rows("triton", page_of(name))}
        known = {model: one["requests_finished"] for model, one in found.items() if "requests_finished" in one}
        assert known == computed
        assert found[ensemble]["quality"] == ("partial",)
        assert not {"requests_waiting", "requests_failed", "requests_aborted"} & found[ensemble].keys()
        # What goes to the lake has no row of it at all.
        (step,) = walk("triton", (100, page_of(name)), (160, page_of(name)))
        assert {sample.model for sample in step.samples} == computed.keys()


def test_trap_29_a_model_on_two_devices_is_one_row() -> None:
    page = "".join(
        f'nv_inference_request_success{{model="m",version="1",gpu_uuid="GPU-{one}"}} {count}\n'
        f'nv_inference_compute_infer_duration_us{{model="m",version="1",gpu_uuid="GPU-{one}"}} {count}000000\n'
        for one, count in (("a", 3), ("b", 4))
    )
    found = row("triton", page)
    assert (found["requests_finished"], found["engine_busy_seconds"]) == (7, {"compute_infer": 7.0})


def test_trap_29_several_models_on_one_page_are_several_rows() -> None:
    assert {one["model"] for one in rows("kserve", page_of("kserve/real_03_after.prom"))} == {"scorer-a", "scorer-b"}


def without_trtllm(page: str) -> str:
    """What Triton shows with TensorRT-LLM's backend in Python."""
    return "\n".join(line for line in page.splitlines() if not line.startswith(("nv_trt_llm", "nv_llm"))) + "\n"


def test_trap_30_tensorrt_llm_in_python_lacks_its_own_series() -> None:
    """Triton's own counters are left, marked; what they do not tell is unknown, not 0."""
    bare = without_trtllm(page_of("triton/trtllm-backend-1.x.prom"))
    found = row("triton", bare, model="tensorrt_llm")
    assert (found["requests_finished"], found["quality"]) == (2011, ("partial",))
    assert not {"generation_tokens", "kv_used_ratio", "requests_running", "requests_waiting"} & found.keys()
    more = bare.replace('model="tensorrt_llm",version="1"} 2011', 'model="tensorrt_llm",version="1"} 2020')
    (step,) = walk("triton", (100, bare), (160, more))
    assert {sample.model: sample.requests_finished for sample in step.samples}["tensorrt_llm"] == 9


def test_trap_30_counters_that_never_count_are_no_proof_of_an_idle_server() -> None:
    """Before 23.12 Triton's own counters stay 0 under this backend. A model on a device that shows 0 is idle."""
    bare = without_trtllm(page_of("triton/trtllm-backend-1.x.prom")).replace("} 2011", "} 0")
    (step,) = walk("triton", (100, bare), (160, bare))
    assert {sample.requests_finished for sample in step.samples} == {None}
    idle = 'nv_inference_request_success{model="ocr",version="1",gpu_uuid="GPU-8f1c2b34"} 0\n'
    (step,) = walk("triton", (100, idle), (160, idle))
    assert [(sample.requests_finished, sample.quality) for sample in step.samples] == [(0, ())]


def test_trap_31_a_low_share_of_the_cache_is_not_a_low_load() -> None:
    """Prefill-heavy load queues hard at 16 to 32 % of the cache: queue, cache and latency reach the lake as three."""

    def page(waiting: int, ratio: float, waited: int) -> str:
        return (
            'vllm:num_requests_running{engine="0",model_name="m"} 8\n'
            f'vllm:num_requests_waiting{{engine="0",model_name="m"}} {waiting}\n'
            f'vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} {ratio}\n'
            f'vllm:request_queue_time_seconds_bucket{{engine="0",model_name="m",le="5"}} {waited // 10}\n'
            f'vllm:request_queue_time_seconds_bucket{{engine="0",model_name="m",le="+Inf"}} {waited}\n'
            f'vllm:request_queue_time_seconds_sum{{engine="0",model_name="m"}} {waited * 9}\n'
            f'vllm:request_queue_time_seconds_count{{engine="0",model_name="m"}} {waited}\n'
        )

    server, windows = server_of("vllm", "http://llm:8000/metrics", server="llm"), EngineWindows()
    pages = ((0, page(0, 0.1, 0)), (15, page(40, 0.16, 10)), (30, page(60, 0.32, 20)))
    for second, text in pages:
        windows.advance(1_800_000_000 + second, "llm", server.read(text, read_at_ns=second * 1_000_000_000))
    window, waits = windows.close(1_800_000_030)
    assert isinstance(window, EngineWindowRow)
    assert isinstance(waits, EngineHistogramRow)
    assert (window.kv_used_max_millionths, window.kv_used_ms) == (320_000, 15_000 * 48 // 100)
    assert (window.waiting_max_requests, window.waiting_request_ms) == (60, 15_000 * 100)
    assert (waits.signal, waits.counts, waits.sum_microunits) == ("queue_time_seconds", "2,18", 180_000_000)
    for kind in ("vllm", "sglang", "trtllm", "triton", "lmdeploy", "dynamo", "nim"):
        names = {signal.name for signal in ENGINES[kind].signals}
        assert {"kv_used_ratio", "requests_waiting", "time_to_first_token_seconds"} <= names


def test_trap_33_a_page_of_tens_of_megabytes_takes_bounded_memory() -> None:
    """Labels that clients fill: of families that nobody asked for nothing is kept, of the others a bounded number.

    What was left out is counted and marks the rows; sums of what is left are exact.
    """
    lines = ["litellm_in_flight_requests 1"]
    for number in range(SERIES_LIMIT + 2_000):
        labels = (
            f'requested_model="m",team="t{number % 7}",end_user="e{number}",user_agent="{"Mozilla/5.0 " * 20}{number}"'
        )
        lines.append(f"litellm_input_tokens_metric_total{{{labels}}} 3")
        if number % 5 == 0:
            lines.append(f"litellm_deployment_latency_per_output_token_bucket{{{labels}}} 0.01")
    text = "\n".join(lines) + "\n"
    assert len(text) > 20_000_000
    server = server_of("litellm", "http://server:4000/metrics/")
    before = remembered_series()
    reading = server.read(text).totals
    assert remembered_series() - before <= SERIES_LIMIT
    assert counts(reading) == {"too_many_series": 2_001}
    teams = [sample for sample in reading.samples if sample.tenant]
    assert len(teams) == 7
    assert sum(sample.prompt_tokens or 0 for sample in teams) == 3 * (SERIES_LIMIT - 1)
    assert all("partial" in sample.quality for sample in reading.samples)


def test_trap_33_families_that_nobody_asked_for_are_not_even_parsed() -> None:
    parser = Parser(wants=lambda name: name == "known_total")
    page = parser.parse('other{user="a"} 1\nother{user="b" 1\nknown_total{user="a"} 2\nplain 3\n')
    assert [(sample.series.name, sample.value) for sample in page.samples] == [("known_total", 2.0), ("plain", 3.0)]
    assert page.rejected == {}
    assert parser.parse('other{user="a"} 1\n').samples == ()
    with pytest.raises(PageError, match="holds no metric sample"):
        parser.parse("nothing here\n")


def test_trap_33_labels_that_clients_make_up_cannot_make_rows_without_end() -> None:
    """Tokens of the tenants beyond the limit stay in the row of nobody, so the sum is right."""
    lines = [
        f'litellm_input_tokens_metric_total{{requested_model="m",team="t{number}",end_user="e{number}"}} 3'
        for number in range(3000)
    ]
    reading = read("litellm", "litellm_in_flight_requests 1\n" + "\n".join(lines) + "\n")
    assert len(reading.samples) == 1000
    assert sum(sample.prompt_tokens or 0 for sample in reading.samples) == 9000
    assert counts(reading)["too_many_rows"] == 2001
    (nobody,) = [sample for sample in reading.samples if sample.tenant is None]
    assert "partial" in nobody.quality


def test_trap_33_models_that_clients_make_up_cannot_make_rows_without_end() -> None:
    lines = [f'model_infer_request_failure_total{{model="nope{number}",version="None"}} 1' for number in range(3000)]
    page = 'model_infer_request_success_total{model="a",version="None"} 5\n' + "\n".join(lines) + "\n"
    reading = read("mlserver", page)
    assert len(reading.samples) == 1000
    assert reading.samples[0].requests_finished == 5
    assert counts(reading)["too_many_rows"] == 2001
