"""Pages become rows: what is believed, what is refused, and which row a series belongs to."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from collectors.exposition import PageError
from collectors.serving.collector import server_name
from collectors.serving.rows import ROW_LIMIT
from collectors.serving.samples import Histogram, merged
from collectors.serving.values import WORD_LIMIT
from tests.collectors.serving.engine_pages import counts, only, recorded, totals

if TYPE_CHECKING:
    from collections.abc import Callable

M = 'engine="0",model_name="m"'
PAGES = [
    ("vllm", "0.4.3.prom"),
    ("vllm", "0.6.6-v0-lora.prom"),
    ("vllm", "0.8.5-v1.prom"),
    ("vllm", "0.11.2-dp2.prom"),
    ("vllm", "0.16.0.prom"),
    ("vllm", "0.33.0-dp2-lora-spec.prom"),
    ("vllm", "real_a_00_boot_idle.prom.gz"),
    ("vllm", "real_a_01_idle.prom.gz"),
    ("vllm", "real_a_02_under_load.prom.gz"),
    ("vllm", "real_a_03_after.prom.gz"),
    ("vllm", "real_b_lora_00_boot_idle.prom.gz"),
    ("vllm", "real_b_lora_02_under_load_503shed.prom.gz"),
    ("vllm", "real_b_lora_03_before_restart.prom.gz"),
    ("vllm", "real_b_lora_04_just_after_restart.prom.gz"),
    ("vllm", "real_b_lora_05_under_load_after_restart.prom.gz"),
    ("vllm", "real_b_lora_06_after.prom.gz"),
    ("vllm", "real_d_dp2_01_idle.prom.gz"),
    ("vllm", "real_d_dp2_02_under_load.prom.gz"),
    ("vllm", "real_d_dp2_03_after.prom.gz"),
    ("sglang", "0.4.6.prom"),
    ("sglang", "0.5.3.prom"),
]


@pytest.mark.parametrize(("kind", "name"), PAGES, ids=[f"{kind}-{name}" for kind, name in PAGES])
def test_a_recorded_page_yields_its_rows(kind: str, name: str, golden: Callable[[str, str | bytes], None]) -> None:
    reading = recorded(kind, name)
    assert reading.rejected == ()
    stem = name.removesuffix(".gz").removesuffix(".prom")
    golden(f"serving/{kind}/{stem}.jsonl", "".join(f"{json.dumps(asdict(row))}\n" for row in reading.samples))


def test_a_bad_line_costs_that_line() -> None:
    reading = totals("vllm", f"vllm:num_requests_running{{{M}}} 3", 'vllm:prompt_tokens_total{engine="0",model_na')
    assert only(reading).requests_running == 3
    assert counts(reading) == {"bad_labels": 1}


@pytest.mark.parametrize("value", ["1.0001", "87.31", "-0.1"])
def test_a_ratio_out_of_range_is_refused_and_never_bent(value: str) -> None:
    reading = totals("vllm", f"vllm:kv_cache_usage_perc{{{M}}} {value}", f"vllm:num_requests_running{{{M}}} 1")
    row = only(reading)
    assert (row.kv_used_ratio, row.requests_running, row.quality) == (None, 1, ("partial", "rejected"))
    assert counts(reading) == {"range": 1}


def test_a_negative_counter_is_refused() -> None:
    reading = totals("vllm", f"vllm:prompt_tokens_total{{{M}}} -5", f"vllm:generation_tokens_total{{{M}}} 7")
    assert (only(reading).prompt_tokens, only(reading).generation_tokens) == (None, 7)
    assert counts(reading) == {"range": 1}


def test_a_duplicate_series_keeps_the_first_in_either_spelling() -> None:
    reading = totals(
        "vllm",
        f"vllm:num_requests_running{{{M}}} 3",
        f"vllm:num_requests_running{{{M}}} 5",
        f"vllm_num_requests_running{{{M}}} 9",
    )
    assert only(reading).requests_running == 3
    assert counts(reading) == {"duplicate_series": 2}


def test_a_page_without_any_required_signal_is_an_error_and_with_some_is_marked() -> None:
    with pytest.raises(PageError, match="none that every vllm server has"):
        totals("vllm", "vllm:num_preemptions_total 3")
    reading = totals("vllm", f"vllm:num_requests_running{{{M}}} 3")
    assert reading.required_missing == ("prompt_tokens", "generation_tokens", "kv_used_ratio")
    assert only(reading).quality == ("partial",)


def test_a_sum_of_two_families_has_a_row_for_each_place() -> None:
    """Rejections name no engine and errors do; both are failures, and neither is lost or counted twice."""
    reading = recorded("vllm", "0.33.0-dp2-lora-spec.prom")
    failed = {row.engine_index: row.requests_failed for row in reading.samples}
    assert failed == {"0": 3, "1": 3, None: 12}


def test_labels_of_users_keys_and_workers_never_leave() -> None:
    secrets = (
        'user="eve@example.com",hashed_api_key="88dc28d0f030c55e",user_agent="curl/8",WorkerId="0a1b2c",team="crimson"'
    )
    reading = totals(
        "vllm",
        f"ray_vllm:num_requests_running{{{M},{secrets}}} 3",
        f'vllm:request_success_total{{{M},finished_reason="stop",{secrets}}} 3',
    )
    text = json.dumps(asdict(reading))
    assert [word for word in ("eve", "88dc", "curl", "0a1b2c", "crimson") if word in text] == []
    assert only(reading).requests_finished_by_reason == {"stop": 3}


def test_words_and_names_of_strangers_are_bounded_and_sums_stay_right() -> None:
    lines = [f'vllm:request_success_total{{{M},finished_reason="{"x" * 500}{n}"}} 1' for n in range(3)]
    lines += [f'vllm:request_success_total{{{M},finished_reason="r{n}"}} 1' for n in range(100)]
    reading = totals("vllm", f"vllm:num_requests_running{{{M}}} 3", *lines)
    reasons = only(reading).requests_finished_by_reason or {}
    assert len(reasons) == WORD_LIMIT + 1
    assert max(len(word) for word in reasons) == 64
    assert sum(reasons.values()) == only(reading).requests_finished == 103


def test_models_that_clients_make_up_do_not_make_rows_without_end() -> None:
    count = ROW_LIMIT + 7
    reading = totals("vllm", *(f'vllm:num_requests_running{{model_name="m{n}"}} 1' for n in range(count)))
    assert len(reading.samples) == ROW_LIMIT
    assert counts(reading) == {"too_many_rows": 7}


def test_a_series_without_model_or_index_belongs_to_the_only_one() -> None:
    info = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1'
    one = totals("vllm", f"vllm:num_requests_running{{{M}}} 3", info)
    assert only(one).kv_capacity_tokens == 1600
    two = totals("vllm", f"vllm:num_requests_running{{{M}}} 3", 'vllm:num_requests_running{model_name="n"} 1', info)
    found = [(row.model, row.engine_index, row.kv_capacity_tokens) for row in two.samples]
    assert found == [("m", "0", None), ("n", None, None), (None, None, 1600)]


def test_capacity_is_what_the_engine_says_in_tokens_else_blocks_times_their_size() -> None:
    running = f"vllm:num_requests_running{{{M}}} 3"
    info = f'{M},block_size="32",num_gpu_blocks="66"'
    said = totals("vllm", running, f'vllm:cache_config_info{{{info},kv_cache_size_tokens="1056"}} 1')
    blocks = totals("vllm", running, f'vllm:cache_config_info{{{info},kv_cache_size_tokens="None"}} 1')
    none = totals("vllm", running, f'vllm:cache_config_info{{{M},num_gpu_blocks="None",block_size="16"}} 1')
    assert [only(reading).kv_capacity_tokens for reading in (said, blocks, none)] == [1056, 2112, None]


def test_a_histogram_without_its_sum_or_with_falling_buckets_is_counted() -> None:
    name = "vllm:time_to_first_token_seconds"
    reading = totals(
        "vllm",
        f"vllm:num_requests_running{{{M}}} 3",
        f'{name}_bucket{{{M},le="1"}} 5',
        f'{name}_bucket{{{M},le="2"}} 4',
        f"{name}_sum{{{M}}} 9",
        f"{name}_count{{{M}}} 6",
        f"vllm:e2e_request_latency_seconds_count{{{M}}} 6",
    )
    assert counts(reading) == {"incomplete_histogram": 2}
    assert only(reading).histograms == {"time_to_first_token_seconds": Histogram((), (), 9.0, 6)}


def test_a_quantile_is_found_inside_its_bucket_and_never_beyond_the_last_bound() -> None:
    histogram = Histogram((1.0, 2.0, 4.0), (10, 10, 0, 5), 40.0, 25)
    assert histogram.quantile(0.4) == (1.0, False)
    assert histogram.quantile(0.6) == (1.5, False)
    assert histogram.quantile(0.9) == (4.0, True)
    assert Histogram((), (), 1.0, 1).quantile(0.5) is None
    assert Histogram((1.0,), (0, 0), 0.0, 0).quantile(0.5) is None


def test_histograms_of_other_bounds_add_up_to_sums_only() -> None:
    one, two = Histogram((1.0,), (2, 1), 4.0, 3), Histogram((1.0, 2.0), (1, 1, 0), 2.0, 2)
    assert merged(one, one) == Histogram((1.0,), (4, 2), 8.0, 6)
    assert merged(one, two) == Histogram((), (), 6.0, 5)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("http://10.0.0.7:8000/metrics?key=secret", "10.0.0.7:8000"),
        ("https://user:pass@llm/metrics", "llm"),
        ("pages/vllm.prom", "vllm.prom"),
        ("http://[", "page"),
    ],
)
def test_a_server_is_named_by_host_and_port_or_file(source: str, name: str) -> None:
    assert server_name(source) == name
