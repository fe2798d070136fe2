"""Each recorded page yields exactly its expected rows, and the numbers in them are those on the page.

The golden files hold whole rows; the table below holds numbers that were read off the pages by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collectors.exposition import PageError
from tests.collectors.serving.engine_pages import FIXTURES
from tests.collectors.serving.engines.pages_at_hand import (
    PAGES,
    json_lines,
    kind_of,
    page_of,
    read,
    row,
    rows,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Servers that nobody has called yet: they declare their series and show none.
UNUSED = ("kserve/real_01_idle.prom", "kserve/real_mlserver_01_idle.prom")


def name_of(path: Path) -> str:
    return path.relative_to(FIXTURES).as_posix()


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_rows_of_a_recorded_page(path: Path, golden: Callable[[str, str | bytes], None]) -> None:
    name = name_of(path).removesuffix(".gz").removesuffix(".prom").removesuffix(".json")
    golden(f"serving/{name}.jsonl", json_lines(read(kind_of(path), text_of(path))))


@pytest.mark.parametrize("name", UNUSED)
def test_a_server_that_nobody_called_has_no_rows_and_is_no_failure(name: str) -> None:
    """Unlike a page that does not even declare what such a server has."""
    kind, page = kind_of(FIXTURES / name), page_of(name)
    assert rows(kind, page) == []
    assert read(kind, page).required_missing != ()
    undeclared = "".join(f"{line}\n" for line in page.splitlines() if line.startswith(("python_", "process_")))
    with pytest.raises(PageError, match=f"none that every {kind} server has"):
        rows(kind, undeclared)


BY_HAND: list[tuple[str, dict[str, object], dict[str, Any]]] = [
    (
        "trtllm/serve-1.3.prom",
        {"model": "Qwen/Qwen3-32B"},
        {
            "requests_running": 38,
            "requests_waiting": 4,
            "kv_used_ratio": 0.771,
            "kv_capacity_tokens": 14021 * 32,
            "prompt_tokens": 2_500_913,
            "prompt_tokens_cached": 1_101_200,
            "prompt_tokens_computed": 2_500_913 - 1_101_200,
            "generation_tokens": 940_114,
            "generation_counted": "at_finish",
            "requests_finished": 2880 + 301,
            "requests_failed": 12 + 1,
            "batch_tokens": 812 + 37,
        },
    ),
    (
        "trtllm/serve-metrics.json",
        {"engine": "trtllm"},
        {
            "counters": "delta",
            "requests_running": 38,
            "requests_waiting": 3,
            "kv_used_ratio": 10814 / 14021,
            "kv_capacity_tokens": 14021 * 32,
            "requests_finished": 1,
        },
    ),
    (
        "triton/trtllm-backend-1.x.prom",
        {"model": "tensorrt_llm"},
        {
            "requests_running": 38,
            "requests_waiting": 3,
            "requests_swapped_or_paused": 0,
            "kv_used_ratio": 0.774,
            "kv_capacity_tokens": 6239 * 64,
            "prompt_tokens": 1_335_981,
            "generation_tokens": 463_113,
            "generation_counted": "at_finish",
            "requests_finished": 2011,
        },
    ),
    (
        "triton/vllm-backend.prom",
        {"model": "vllm_model"},
        {"requests_running": 11, "kv_used_ratio": 0.21, "prompt_tokens": 402_113, "generation_tokens": 151_002},
    ),
    (
        "tgi/3.3.7.prom",
        {"engine": "tgi"},
        {
            "requests_running": 31,
            "requests_waiting": 4,
            "kv_capacity_tokens": 64_512,
            "prompt_tokens": 2_824_205,
            "generation_tokens": 954_894,
            "generation_counted": "at_finish",
            "requests_received": 4011,
            "requests_finished": 3921,
            "requests_failed": 41 + 22 + 3 + 5,
            "requests_aborted": 19,
            "quality": ("estimated",),
        },
    ),
    (
        "ray_serve/2.60.0-serve-llm.prom",
        {"model": "LLMServer:qwen3-32b"},
        {"requests_running": 21, "requests_waiting": 5, "requests_finished": 911, "requests_failed": 8},
    ),
    (
        "nim/1.x.prom",
        {"model": "meta/llama-3.1-8b-instruct"},
        {
            "requests_running": 7,
            "requests_waiting": 23,
            "kv_used_ratio": 0.25,
            "prompt_tokens": 905_211,
            "generation_tokens": 402_113,
            "finished_prompt_tokens": 900_100,
            "finished_generation_tokens": 399_902,
            "requests_finished": 3010 + 301,
            "requests_finished_by_reason": {"stop": 3010, "length": 301},
        },
    ),
    (
        "dynamo/0.8-frontend.prom",
        {"model": "Qwen/Qwen3-32B"},
        {
            "requests_running": 44 - 7,
            "requests_waiting": 7,
            "kv_capacity_tokens": 27_819 * 16,
            "prompt_tokens": 2_643_443,
            "generation_tokens": 940_114,
            "generation_counted": "live",
            "finished_generation_tokens": 918_980,
            "requests_finished": 3181,
            "requests_failed": 13,
        },
    ),
    (
        "dynamo/1.0-worker-trtllm.prom",
        {"model": "Qwen/Qwen3-32B"},
        {"requests_running": 38, "kv_used_ratio": 0.771, "model_load_seconds": 61.2, "requests_aborted": 9},
    ),
    (
        "lmdeploy/0.18.0.prom",
        {"model": "internlm3-8b", "engine_index": "0"},
        {
            "requests_running": 29,
            "requests_waiting": 2,
            "kv_used_ratio": 0.57,
            "prompt_tokens": 800_123,
            "prompt_tokens_cached": 250_011,
            "generation_tokens": 402_221,
            "requests_finished": 2011,
            "requests_finished_by_reason": {"stop": 1900, "length": 111},
            "requests_failed": 3,
        },
    ),
    (
        "llamacpp/2026.prom",
        {"engine": "llamacpp"},
        {
            "requests_running": 2,
            "requests_waiting": 5,
            "prompt_tokens_computed": 402_113,
            "generation_tokens": 99_201,
            "generation_counted": "at_finish",
            "engine_busy_seconds": {"prompt": 612.402, "predicted": 2310.11},
        },
    ),
    (
        "litellm/1.110.2.prom",
        {"tenant": "t-risk"},
        {
            "model": "llama-70b",
            "prompt_tokens": 1_710_220,
            "prompt_tokens_cached": 989_232,
            "generation_tokens": 402_113,
            "requests_received": 1811 + 7,
            "requests_finished": 1811,
            "requests_failed": 7,
        },
    ),
    (
        "envoy_ai_gateway/1.1.prom",
        {"tenant": "support"},
        {"model": "llama-70b", "prompt_tokens": 1_098_164, "generation_tokens": 516_460},
    ),
    (
        "inference_extension/epp-1.5.0.prom",
        {"model": "llama-70b", "requests_received": 3901},
        {
            "served_model": "llama-70b-v2",
            "prompt_tokens": 2_766_121,
            "prompt_tokens_cached": 1_267_071,
            "generation_tokens": 1_083_750,
            "requests_failed": 12,
        },
    ),
    ("inference_extension/epp-1.5.0.prom", {"tenant": "support"}, {"requests_waiting": 9}),
    ("kserve/0.21.0.prom", {"model": "fraud-xgb"}, {"requests_received": 9021, "requests_failed": 0}),
    (
        "torchserve/0.12.0.prom",
        {"model": "fraud_bert"},
        {"requests_received": 8812, "requests_failed": 3, "model_load_seconds": 8.123},
    ),
]


@pytest.mark.parametrize(("name", "where", "expected"), BY_HAND, ids=[name for name, _, _ in BY_HAND])
def test_numbers_read_off_the_page_by_hand(name: str, where: dict[str, object], expected: dict[str, Any]) -> None:
    found = row(kind_of(FIXTURES / name), page_of(name), **where)
    assert {key: found.get(key) for key in expected} == expected


def test_before_it_was_taken_out_llamacpp_showed_its_cache() -> None:
    assert row("llamacpp", page_of("llamacpp/pre-13660.prom"))["kv_used_ratio"] == 0.44
    assert "kv_used_ratio" not in row("llamacpp", page_of("llamacpp/2026.prom"))


def test_trtllm_1_0_has_five_series_and_no_model() -> None:
    found = row("trtllm", page_of("trtllm/serve-1.0.prom"))
    assert found["requests_finished_by_reason"] == {"stop": 2880, "length": 301}
    assert "model" not in found
    assert "generation_tokens" not in found
    assert {name: histogram["count"] for name, histogram in found["histograms"].items()} == {
        "time_to_first_token_seconds": 3181,
        "request_time_per_token_seconds": 3181,
        "request_latency_seconds": 3181,
        "queue_time_seconds": 2700,
    }


def test_time_between_tokens_is_per_request_or_per_token() -> None:
    """TensorRT-LLM's `time_per_output_token` is per request, NIM's and Triton's vLLM's of that name per token."""
    trtllm = row("trtllm", page_of("trtllm/serve-1.3.prom"))["histograms"]
    assert trtllm["request_time_per_token_seconds"]["count"] == 3181
    assert "inter_token_latency_seconds" not in trtllm
    vllm = row("triton", page_of("triton/vllm-backend.prom"))["histograms"]
    assert vllm["inter_token_latency_seconds"]["count"] == 150_191
    lmdeploy = row("lmdeploy", page_of("lmdeploy/0.18.0.prom"))["histograms"]
    assert lmdeploy["inter_token_latency_seconds"]["count"] == 400_210
    assert lmdeploy["request_time_per_token_seconds"]["count"] == 2014


def test_an_engine_inside_ray_is_read_as_that_engine_on_the_same_page() -> None:
    found = row("vllm", page_of("ray_serve/2.60.0-serve-llm.prom"))
    assert (found["model"], found["engine_index"]) == ("qwen3-32b", "0")
    assert (found["requests_running"], found["kv_used_ratio"]) == (21, 0.31)
    assert (found["prompt_tokens"], found["generation_tokens"]) == (501_223, 202_113)
    assert (found["prefix_query_tokens"], found["prefix_hit_tokens"]) == (501_223, 120_112)


def test_nim_by_its_documented_names() -> None:
    """No server was at hand: the page is composed from its documentation. One series has had two names."""
    page = page_of("nim/1.x.prom")
    found = row("nim", page)
    assert found["histograms"]["time_to_first_token_seconds"]["counts"] == (2004, 1197, 117)
    assert found["histograms"]["inter_token_latency_seconds"]["count"] == 398_795
    assert row("nim", page.replace("request_success_total", "request_finish_total")) == found


def test_names_without_a_prefix_are_read_as_the_kind_that_was_told() -> None:
    """NIM, TensorRT-LLM 1.0 and others share names; only the configuration can tell which it is."""
    page = page_of("trtllm/serve-1.0.prom")
    assert row("trtllm", page)["engine"] == "trtllm"
    with pytest.raises(PageError):
        rows("nim", page)
