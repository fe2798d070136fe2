"""NVIDIA NIM 1.x for language models: `/v1/metrics`, whose names have no prefix and are others' too.

Names are those of its documentation. 2.x was not looked at.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.mapping import Dedupe, EngineMapping, Signal, Source

_DONE = ("request_success_total", "request_finish_total")

NIM: Final = EngineMapping(
    kind="nim",
    signals=(
        spelled("requests_running", "num_requests_running"),
        spelled("requests_waiting", "num_requests_waiting"),
        # A ratio, whatever its name says.
        spelled("kv_used_ratio", "gpu_cache_usage_perc"),
        spelled("prompt_tokens", "prompt_tokens_total"),
        spelled("generation_tokens", "generation_tokens_total"),
        spelled("finished_prompt_tokens", "request_prompt_tokens_sum"),
        spelled("finished_generation_tokens", "request_generation_tokens_sum"),
        spelled("requests_finished", *_DONE),
        Signal("requests_finished_by_reason", tuple(Source(name, by="finished_reason") for name in _DONE)),
        spelled("time_to_first_token_seconds", "time_to_first_token_seconds"),
        spelled("inter_token_latency_seconds", "time_per_output_token_seconds"),
        spelled("request_latency_seconds", "e2e_request_latency_seconds"),
    ),
    required=("requests_running", "kv_used_ratio"),
    dedupe=(Dedupe("pid", "max"),),
)
