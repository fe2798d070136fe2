"""LMDeploy 0.18.

Names are those of its `metrics/loggers.py`. `num_requests_succeeded` and `num_requests_failed` say that they are
gauges and are counters. The hit rate is left out: two gauges cannot be added up, the counters beside it can.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.mapping import Dedupe, EngineMapping, Signal, Source

_DONE = "lmdeploy:request_success_total"


def _one(signal: str, *names: str) -> Signal:
    return spelled(signal, *(f"lmdeploy:{name}" for name in names))


LMDEPLOY: Final = EngineMapping(
    kind="lmdeploy",
    signals=(
        _one("requests_running", "num_requests_running"),
        # Those that the engine has, and those that the API server has not passed on to it yet.
        Signal(
            "requests_waiting",
            (Source("lmdeploy:num_requests_waiting", plus=(Source("lmdeploy:num_api_requests_waiting"),)),),
        ),
        # A ratio, whatever its name says.
        _one("kv_used_ratio", "gpu_cache_usage_perc"),
        _one("prefix_query_tokens", "prompt_tokens_total"),
        _one("prefix_hit_tokens", "cached_tokens_total"),
        _one("prompt_tokens", "prompt_tokens_total"),
        _one("prompt_tokens_cached", "cached_tokens_total"),
        _one("generation_tokens", "generation_tokens_total"),
        Signal("requests_finished", (Source(_DONE), Source("lmdeploy:num_requests_succeeded"))),
        Signal("requests_finished_by_reason", (Source(_DONE, by="finished_reason"),)),
        _one("requests_failed", "num_requests_failed"),
        _one("time_to_first_token_seconds", "time_to_first_token_seconds"),
        # Two signals: one observation per token, and one per request.
        _one("inter_token_latency_seconds", "iter_token_latency"),
        _one("request_time_per_token_seconds", "time_per_output_token_seconds"),
        _one("request_latency_seconds", "e2e_request_latency_seconds"),
        _one("queue_time_seconds", "request_queue_time_seconds"),
        _one("prefill_time_seconds", "request_prefill_time_seconds"),
        _one("decode_time_seconds", "request_decode_time_seconds"),
    ),
    required=("requests_running", "kv_used_ratio"),
    index_labels=("engine",),
    dedupe=(Dedupe("pid", "max"),),
)
