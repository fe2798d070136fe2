"""TensorRT-LLM's `trtllm-serve`: its Prometheus page, at `/prometheus/metrics`.

It is there with `return_perf_metrics: true`, its gauges with `enable_iter_perf_stats: true` too. Names and labels are
those of its `metrics/collector.py`: 1.0 and 1.1 print five series without any prefix, 1.3 prints `trtllm_*`. The page
`/metrics` of the same server is another one, JSON, and reading it takes rows away (`trtllm_json`).
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.mapping import Dedupe, EngineMapping, Signal, Source, VersionEndpoint

_PROMPT = "trtllm_prompt_tokens_total"
_CACHED = "trtllm_prompt_cached_tokens_total"
_DONE = ("trtllm_request_success_total", "request_success_total")


def _latency(signal: str, name: str) -> Signal:
    return spelled(signal, f"trtllm_{name}", name)


TRTLLM: Final = EngineMapping(
    kind="trtllm",
    signals=(
        spelled("requests_running", "trtllm_num_requests_running"),
        spelled("requests_waiting", "trtllm_num_requests_waiting"),
        spelled("requests_swapped_or_paused", "trtllm_num_paused_requests"),
        spelled("kv_used_ratio", "trtllm_kv_cache_utilization"),
        Signal(
            "kv_capacity_tokens",
            (Source("trtllm_kv_cache_max_blocks", times=(Source("trtllm_kv_cache_tokens_per_block"),)),),
        ),
        spelled("prefix_query_tokens", _PROMPT),
        spelled("prefix_hit_tokens", _CACHED),
        spelled("prompt_tokens", _PROMPT, at_finish=True),
        spelled("prompt_tokens_cached", _CACHED, at_finish=True),
        spelled("generation_tokens", "trtllm_generation_tokens_total", at_finish=True),
        spelled("requests_finished", *_DONE),
        Signal("requests_finished_by_reason", tuple(Source(name, by="finished_reason") for name in _DONE)),
        spelled("requests_failed", "trtllm_request_error_total"),
        spelled("spec_draft_tokens", "trtllm_spec_decode_num_draft_tokens_total"),
        spelled("spec_accepted_tokens", "trtllm_spec_decode_num_accepted_tokens_total"),
        spelled("batch_size", "trtllm_num_scheduled_requests"),
        # A request in its decode phase adds one token to a batch; drafts of speculation would be more.
        Signal(
            "batch_tokens",
            (Source("trtllm_total_context_tokens", plus=(Source("trtllm_num_generation_requests"),)),),
        ),
        _latency("time_to_first_token_seconds", "time_to_first_token_seconds"),
        # One observation per request here, whereas others use the same name for one per token.
        _latency("request_time_per_token_seconds", "time_per_output_token_seconds"),
        _latency("request_latency_seconds", "e2e_request_latency_seconds"),
        # Waits of exactly 0 are not observed, so its mean is that of the requests that waited.
        _latency("queue_time_seconds", "request_queue_time_seconds"),
        _latency("prefill_time_seconds", "request_prefill_time_seconds"),
        _latency("decode_time_seconds", "request_decode_time_seconds"),
    ),
    required=("requests_finished",),
    # Gauges are made without a mode for many processes, so each process has its own.
    dedupe=(Dedupe("pid", "max"),),
    version_endpoints=(VersionEndpoint("/version"),),
)
