"""vLLM 0.4 to 0.33, with the old engine (V0) and the new (V1), alone, under Ray and inside Triton.

Names, labels and types are those of its own sources (`engine/metrics.py`, `v1/metrics/loggers.py`); what they mean
under load was checked against vLLM 0.32 and its clients. Left out on purpose: gauges of hit and acceptance rates (the
old ones say -1 where caching is off, none can be added up) and throughput averages.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.mapping import Dedupe, EngineMapping, Signal, Source, VersionEndpoint

_CACHE = "vllm:cache_config_info"
_BLOCK_SIZE = Source(_CACHE, label="block_size")
_BY_SOURCE = "vllm:prompt_tokens_by_source_total"
_DONE = "vllm:request_success_total"
# Before 0.9 the new engine counted these two in blocks; when its version is not known, neither is the unit.
_BLOCKS_BEFORE = "0.9"


def _prefix(what: str) -> tuple[Source, ...]:
    old = f"vllm:gpu_prefix_cache_{what}_total"
    return (
        Source(f"vllm:prefix_cache_{what}_total"),
        Source(old, since=_BLOCKS_BEFORE),
        Source(old, before=_BLOCKS_BEFORE, times=(_BLOCK_SIZE,)),
    )


def _one(name: str, *spellings: str) -> Signal:
    return Signal(name, tuple(Source(f"vllm:{spelling}") for spelling in spellings))


VLLM: Final = EngineMapping(
    kind="vllm",
    signals=(
        _one("requests_running", "num_requests_running"),
        _one("requests_waiting", "num_requests_waiting"),
        Signal("requests_waiting_by_reason", (Source("vllm:num_requests_waiting_by_reason", by="reason"),)),
        _one("requests_swapped_or_paused", "num_requests_swapped"),
        # A ratio, whatever its name says.
        _one("kv_used_ratio", "kv_cache_usage_perc", "gpu_cache_usage_perc"),
        Signal(
            "kv_capacity_tokens",
            (
                Source(_CACHE, label="kv_cache_size_tokens"),
                Source(_CACHE, label="num_gpu_blocks", times=(_BLOCK_SIZE,)),
            ),
            combine="max",
        ),
        Signal("prefix_query_tokens", _prefix("queries")),
        Signal("prefix_hit_tokens", _prefix("hits")),
        _one("prompt_tokens", "prompt_tokens_total"),
        Signal(
            "prompt_tokens_cached",
            (
                Source("vllm:prompt_tokens_cached_total"),
                Source(
                    "vllm:prefix_cache_hits_total",
                    plus=(Source("vllm:external_prefix_cache_hits_total"),),
                    is_estimate=True,
                ),
            ),
        ),
        Signal("prompt_tokens_computed", (Source(_BY_SOURCE, where={"source": "local_compute"}),)),
        _one("generation_tokens", "generation_tokens_total"),
        _one("finished_prompt_tokens", "request_prompt_tokens_sum"),
        _one("finished_generation_tokens", "request_generation_tokens_sum"),
        Signal("requests_finished", (Source(_DONE),)),
        Signal("requests_finished_by_reason", (Source(_DONE, by="finished_reason"),)),
        Signal(
            "requests_failed",
            (
                # Shed streams answer 200, so this count is the better one where it is there.
                Source(
                    "vllm:admission_rejections_total",
                    plus=(Source(_DONE, where={"finished_reason": "error"}),),
                ),
                Source("http_requests_total", where={"status": "5.."}),
            ),
        ),
        # Stays 0 although clients go away (vllm-project/vllm#31503).
        Signal("requests_aborted", (Source(_DONE, where={"finished_reason": "abort"}),), zero_is_unknown=True),
        _one("preemptions", "num_preemptions_total"),
        _one("spec_drafts", "spec_decode_num_drafts_total"),
        _one("spec_draft_tokens", "spec_decode_num_draft_tokens_total"),
        _one("spec_accepted_tokens", "spec_decode_num_accepted_tokens_total"),
        Signal(
            "lora_active",
            (
                Source(
                    "vllm:lora_requests_info",
                    label="running_lora_adapters",
                    more_labels=("waiting_lora_adapters",),
                ),
            ),
        ),
        Signal("sleep_state", (Source("vllm:engine_sleep_state", label="sleep_state"),)),
        # There, and 0 for ever, unless the engine was started with --enable-mfu-metrics.
        Signal("estimated_flops", (Source("vllm:estimated_flops_per_gpu_total"),), zero_is_unknown=True),
        _one("time_to_first_token_seconds", "time_to_first_token_seconds"),
        # The same observations under two names.
        _one("inter_token_latency_seconds", "inter_token_latency_seconds", "time_per_output_token_seconds"),
        _one("request_time_per_token_seconds", "request_time_per_output_token_seconds"),
        _one("request_latency_seconds", "e2e_request_latency_seconds"),
        _one("queue_time_seconds", "request_queue_time_seconds"),
        _one("prefill_time_seconds", "request_prefill_time_seconds"),
        _one("decode_time_seconds", "request_decode_time_seconds"),
        # A histogram, although its name ends like a counter's.
        _one("step_tokens", "iteration_tokens_total"),
    ),
    required=("requests_running", "prompt_tokens", "generation_tokens", "kv_used_ratio"),
    index_labels=("engine",),
    # With several API servers 0.9.2 to 0.11.0 show each gauge once per process, all but one 0.
    dedupe=(Dedupe("pid", "max"),),
    markers=(("vllm:kv_cache_usage_perc", "0.9.2"), ("vllm:prefix_cache_queries_total", "0.9.2")),
    version_endpoints=(VersionEndpoint("/version"),),
)
