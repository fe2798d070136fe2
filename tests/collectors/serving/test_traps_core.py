"""Traps of serving engines' metrics that concern vLLM, SGLang and the reader itself, each in tests by its number."""

from __future__ import annotations

import pytest

from collectors.exposition import PageError
from tests.collectors.serving.engine_pages import counts, only, recorded, totals, walk

M = 'engine="0",model_name="m"'
RUNNING = f"vllm:num_requests_running{{{M}}} 3"
S = 'model_name="q",engine_type="unified"'
QUEUE = f"sglang:num_running_reqs{{{S}}} 2"


def latency(name: str, labels: str, buckets: dict[str, int], total: float) -> list[str]:
    lines = [f'{name}_bucket{{{labels},le="{bound}"}} {count}' for bound, count in buckets.items()]
    return [*lines, f"{name}_sum{{{labels}}} {total}", f"{name}_count{{{labels}}} {max(buckets.values())}"]


def test_trap_01_a_percent_that_is_a_ratio() -> None:
    assert only(totals("vllm", f"vllm:kv_cache_usage_perc{{{M}}} 0.42")).kv_used_ratio == 0.42
    refused = totals("vllm", f"vllm:kv_cache_usage_perc{{{M}}} 42")
    assert (only(refused).kv_used_ratio, counts(refused)) == (None, {"range": 1})


def test_trap_02_a_cache_gauge_of_each_process_all_but_one_0() -> None:
    copies = [f'vllm:kv_cache_usage_perc{{{M},pid="{pid}"}} {value}' for pid, value in ((7, 0), (8, 0.6), (9, 0))]
    reading = totals("vllm", *copies)
    assert only(reading).kv_used_ratio == 0.6
    assert reading.series_deduped == 2


def test_trap_03_gauges_of_a_process_that_is_gone_stay_on_the_page() -> None:
    def page(paused: int) -> str:
        gauges = [f'sglang:num_paused_reqs{{{S},pid="{pid}"}} {n}' for pid, n in ((101, 9), (202, paused))]
        return "\n".join([QUEUE, *gauges])

    steps = walk("sglang", *(page(n % 3) for n in range(8)))
    assert [only(step).requests_swapped_or_paused for step in steps] == [9, 9, 9, 9, 2, 0, 1]


def test_trap_03_a_lone_quiet_process_is_alive() -> None:
    page = f'{QUEUE}\nsglang:num_paused_reqs{{{S},pid="101"}} 4'
    assert only(walk("sglang", *[page] * 9)[-1]).requests_swapped_or_paused == 4


def test_trap_04_old_and_new_names_at_once_are_never_added_up() -> None:
    both = [f"vllm:{name}{{{M}}} 0.4" for name in ("gpu_cache_usage_perc", "kv_cache_usage_perc")]
    for name in ("time_per_output_token_seconds", "inter_token_latency_seconds"):
        both += latency(f"vllm:{name}", M, {"0.1": 5, "+Inf": 8}, 2.5)
    row = only(totals("vllm", *both))
    assert row.kv_used_ratio == 0.4
    assert row.histograms["inter_token_latency_seconds"].count == 8


def test_trap_05_hit_rate_minus_one_is_missing() -> None:
    row = only(recorded("vllm", "0.6.6-v0-lora.prom"))
    assert (row.prefix_query_tokens, row.prefix_hit_tokens, row.prompt_tokens_cached) == (None, None, None)


def test_trap_06_a_hit_rate_that_is_reset_at_each_log_line_is_not_read() -> None:
    row = only(recorded("sglang", "0.5.3.prom"))
    assert (row.prefix_hit_tokens, row.prefix_query_tokens) == (1_190_482, 2_811_044)


def test_trap_07_tokens_that_jump_at_the_end_of_a_request_are_marked() -> None:
    at_end = [f'sglang:{what}_tokens_total{{model_name="q"}} {n}' for what, n in (("prompt", 50), ("generation", 7))]
    row = only(totals("sglang", QUEUE, *at_end))
    assert (row.generation_tokens, row.generation_counted) == (7, "at_finish")
    modes = (("prefill_compute", 60), ("prefill_cache", 5), ("decode", 19))
    live = [f'sglang:realtime_tokens_total{{{S},mode="{mode}"}} {n}' for mode, n in modes]
    row = only(totals("sglang", QUEUE, *at_end, *live))
    assert (row.generation_tokens, row.generation_counted, row.finished_generation_tokens) == (19, "live", 7)
    assert (row.prompt_tokens, row.prompt_tokens_computed, row.prompt_tokens_cached) == (65, 60, 5)


def test_trap_08_prompts_of_requests_given_up_are_work_that_no_request_shows() -> None:
    """vLLM counts 3,010 prompt tokens of requests that clients left, and shows them in no histogram."""

    def page(tokens: int) -> str:
        zeros = f'vllm:request_success_total{{{M},finished_reason="abort"}} 0\nvllm:request_prompt_tokens_sum{{{M}}} 0'
        return f"{RUNNING}\n{zeros}\nvllm:prompt_tokens_total{{{M}}} {tokens}"

    row = only(walk("vllm", page(0), page(3_010))[0])
    assert (row.prompt_tokens, row.finished_prompt_tokens, row.requests_aborted) == (3_010, 0, None)


def test_trap_09_prefill_and_decode_apart_count_a_prompt_twice() -> None:
    def worker(role: str, computed: int, moved: int, made: int) -> list[str]:
        labels = f'model_name="q",engine_type="{role}"'
        modes = (("prefill_compute", computed), ("prefill_cache", moved), ("decode", made))
        tokens = [f'sglang:realtime_tokens_total{{{labels},mode="{mode}"}} {n}' for mode, n in modes]
        return [f"sglang:num_running_reqs{{{labels}}} 1", *tokens]

    both = [
        only(totals("sglang", *worker("prefill", 900, 0, 1))),
        only(totals("sglang", *worker("decode", 0, 900, 64))),
    ]
    assert sum(row.prompt_tokens or 0 for row in both) == 1_800
    assert sum(row.billed_prompt_tokens or 0 for row in both) == 900
    assert sum(row.prompt_tokens_computed or 0 for row in both) == 900
    assert sum(row.billed_generation_tokens or 0 for row in both) == 64


def test_trap_10_every_engine_of_a_data_parallel_server_has_a_row() -> None:
    rows = recorded("vllm", "0.11.2-dp2.prom").samples
    assert [(row.engine_index, row.requests_running, row.kv_used_ratio) for row in rows[:2]] == [
        ("0", 37, 0.8731),
        ("1", 38, 0.8831),
    ]
    assert sum(row.generation_tokens or 0 for row in rows) == 1_204_918 + 1_214_789


def test_trap_11_an_empty_priority_is_the_total_of_the_others() -> None:
    queued = [f'sglang:num_queue_reqs{{{S},priority="{level}"}} {n}' for level, n in (("0", 2), ("1", 4), ("", 6))]
    assert only(totals("sglang", QUEUE, *queued)).requests_waiting == 6
    assert only(totals("sglang", QUEUE, *queued[:2])).requests_waiting == 6  # without a total they are added up


def test_trap_12_every_rank_shows_the_same_requests() -> None:
    ranks = [
        f'sglang:num_queue_reqs{{{S},dp_rank="{dp}",pp_rank="0",tp_rank="{tp}"}} {n}'
        for dp, tp, n in ((0, 10, 5), (0, 2, 4), (1, 0, 7), (1, 1, 7))
    ]
    reading = totals("sglang", QUEUE, *ranks)
    assert {row.engine_index: row.requests_waiting for row in reading.samples} == {None: None, "0": 4, "1": 7}


def test_trap_13_the_newest_adapters_count_and_their_times_are_not_added_up() -> None:
    name = "vllm:lora_requests_info"
    combinations = (("a,b", "", 1.7e9), ("b", "c", 1.8e9), ("b,a", "", 1.75e9))
    lines = [
        f'{name}{{max_lora="2",running_lora_adapters="{on}",waiting_lora_adapters="{off}"}} {at}'
        for on, off, at in combinations
    ]
    assert only(totals("vllm", RUNNING, *lines)).lora_active == ("b", "c")
    idle = f'{name}{{max_lora="2",running_lora_adapters="",waiting_lora_adapters=""}} 1.9e9'
    assert only(totals("vllm", RUNNING, *lines, idle)).lora_active == ()


def test_trap_14_created_series_are_times_not_values() -> None:
    lines = [f"vllm:generation_tokens_total{{{M}}} 7", f"vllm:generation_tokens_created{{{M}}} 1.7855e+09"]
    row = only(totals("vllm", *lines))
    assert row.generation_tokens == 7


def test_trap_15_counters_begin_again() -> None:
    def page(value: float, start: float) -> str:
        return f"process_start_time_seconds {start}\nvllm:generation_tokens_total{{{M}}} {value}"

    (step,) = walk("vllm", page(9.9e6, 1.7855e9), page(1204, 1.785542e9))
    assert only(step).generation_tokens == 1204


def test_trap_16_a_histogram_named_like_a_counter() -> None:
    row = only(totals("vllm", RUNNING, *latency("vllm:iteration_tokens_total", M, {"8": 3, "+Inf": 4}, 40)))
    assert (row.histograms["step_tokens"].counts, row.histograms["step_tokens"].sum) == ((3, 1), 40.0)
    assert row.batch_tokens is None


def test_trap_17_the_type_that_a_page_declares_is_not_believed() -> None:
    def page(value: int) -> str:
        return f"# TYPE vllm:generation_tokens_total gauge\nvllm:generation_tokens_total{{{M}}} {value}"

    assert only(walk("vllm", page(100), page(130))[0]).generation_tokens == 30


def test_trap_18_buckets_of_other_bounds_are_never_added_up() -> None:
    name = "vllm:time_to_first_token_seconds"

    def page(bounds: str, count: int) -> str:
        return "\n".join([RUNNING, *latency(name, M, {bounds: count, "+Inf": count + 1}, 2.0 * count)])

    upgraded = only(walk("vllm", page("10", 4), page("2560", 6))[0]).histograms["time_to_first_token_seconds"]
    assert (upgraded.bounds, upgraded.counts, upgraded.sum, upgraded.count) == ((), (), 4.0, 2)
    slow = only(totals("vllm", RUNNING, *latency(name, M, {"5": 1, "10": 2, "+Inf": 9}, 900))).histograms
    assert slow["time_to_first_token_seconds"].quantile(0.95) == (10.0, True)


def test_trap_19_time_between_tokens_and_time_per_token_of_a_request_are_two_signals() -> None:
    row = only(recorded("vllm", "real_a_03_after.prom.gz"))
    found = {name: row.histograms[name].count for name in row.histograms if "token" in name and "step" not in name}
    assert found == {
        "time_to_first_token_seconds": 200,
        "inter_token_latency_seconds": 44_102,
        "request_time_per_token_seconds": 193,
    }


def test_trap_22_a_page_of_the_interpreter_only_is_a_failed_scrape() -> None:
    lines = ('python_gc_objects_collected_total{generation="0"} 9178', "process_start_time_seconds 1.78554e+09")
    with pytest.raises(PageError, match="none that every vllm server has"):
        totals("vllm", *lines)


def test_trap_25_open_metrics_with_exemplars_and_an_end() -> None:
    row = only(
        totals(
            "vllm",
            "# TYPE vllm:prompt_tokens counter",
            f'vllm:prompt_tokens_total{{{M}}} 12.0 # {{trace_id="ab"}} 1.0 1.785542e+09',
            f"vllm:prompt_tokens_created{{{M}}} 1.7855e+09",
            "# EOF",
        )
    )
    assert row.prompt_tokens == 12


@pytest.mark.parametrize("prefix", ["vllm:", "vllm_", "ray_vllm:", "ray_vllm_"])
def test_trap_26_a_colon_that_became_an_underscore(prefix: str) -> None:
    extra = ',ReplicaId="r",WorkerId="w"' if prefix.startswith("ray") else ""
    row = only(totals("vllm", f"{prefix}num_requests_running{{{M}{extra}}} 3"))
    assert row.requests_running == 3


def test_trap_27_not_a_number_is_missing_and_missing_is_not_0() -> None:
    reading = totals(
        "vllm",
        f"vllm:gpu_prefix_cache_hit_rate{{{M}}} NaN",
        f"vllm:kv_cache_usage_perc{{{M}}} +Inf",
        f"vllm:num_requests_waiting{{{M}}} Nan",
        RUNNING,
    )
    row = only(reading)
    assert (row.requests_running, row.requests_waiting, row.kv_used_ratio) == (3, None, None)
    assert counts(reading) == {"not_finite": 2}


@pytest.mark.parametrize(
    ("labels", "model"),
    [
        ('model_name="m"', "m"),
        ('model="m",version="1"', "m"),
        ('model_name="None"', None),
        ('model_name=""', None),
        ('model_name="None",model="m"', "m"),
    ],
)
def test_trap_28_a_model_has_many_labels_and_none_is_a_word(labels: str, model: str | None) -> None:
    assert only(totals("vllm", f"vllm:num_requests_running{{{labels}}} 3")).model == model


def test_trap_32_waiting_for_capacity_is_told_apart_from_waiting_for_something_else() -> None:
    row = recorded("vllm", "0.33.0-dp2-lora-spec.prom").samples[0]
    assert (row.requests_waiting, row.requests_waiting_by_reason) == (6, {"capacity": 5, "deferred": 1})
