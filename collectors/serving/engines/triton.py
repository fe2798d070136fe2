"""Triton Inference Server, with any backend: its own counters, and those of the TensorRT-LLM and vLLM backends.

Names and labels are those of the server's `metric_model_reporter.cc`, of the TensorRT-LLM backend's
`custom_metrics_reporter.cc` (its C++ part; the Python part prints none of them,
triton-inference-server/tensorrtllm_backend#479) and of the vLLM backend's `metrics.py`. A row is a model, whatever
its versions. An ensemble counts requests that its steps count again, so beside models that compute it has none; only
models on a device get engine time, and an ensemble is on none.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.mapping import EngineMapping, Signal, Source

_MICROSECOND = 1e-6
_ON_A_DEVICE = {"gpu_uuid": ".+"}
_FAILURE = "nv_inference_request_failure"
_TIMES = "nv_inference_compute_{phase}_duration_us"


def _requests(kind: str) -> Source:
    return Source("nv_trt_llm_request_metrics", where={"request_type": kind})


def _blocks(kind: str) -> Source:
    return Source("nv_trt_llm_kv_cache_block_metrics", where={"kv_cache_block_type": kind})


def _batcher(kind: str) -> Source:
    return Source("nv_trt_llm_inflight_batcher_metrics", where={"inflight_batcher_specific_metric": kind})


TRITON: Final = EngineMapping(
    kind="triton",
    signals=(
        Signal("requests_running", (_requests("scheduled"), Source("vllm:num_requests_running"))),
        Signal(
            "requests_waiting",
            (
                _requests("waiting"),
                Source("vllm:num_requests_waiting"),
                Source("nv_inference_pending_request_count"),
            ),
        ),
        Signal("requests_swapped_or_paused", (_batcher("paused_requests"), Source("vllm:num_requests_swapped"))),
        Signal(
            "kv_used_ratio",
            (_blocks("fraction"), Source("vllm:kv_cache_usage_perc"), Source("vllm:gpu_cache_usage_perc")),
        ),
        Signal(
            "kv_capacity_tokens",
            (
                Source(
                    "nv_trt_llm_kv_cache_block_metrics",
                    where={"kv_cache_block_type": "max"},
                    times=(_blocks("tokens_per"),),
                ),
            ),
        ),
        Signal(
            "prompt_tokens",
            (Source("nv_llm_input_token_len_sum", at_finish=True), Source("vllm:prompt_tokens_total")),
        ),
        Signal(
            "generation_tokens",
            (Source("nv_llm_output_token_len_sum", at_finish=True), Source("vllm:generation_tokens_total")),
        ),
        spelled("requests_finished", "nv_inference_request_success", "vllm:e2e_request_latency_seconds_count"),
        # Before a reason was told, one series counted them all.
        Signal("requests_failed", (Source(_FAILURE, where={"reason": "|REJECTED|BACKEND|OTHER"}),)),
        Signal("requests_aborted", (Source(_FAILURE, where={"reason": "CANCELED"}),)),
        spelled("preemptions", "vllm:num_preemptions_total"),
        spelled("model_load_seconds", "nv_model_load_duration_secs"),
        Signal("batch_size", (_requests("scheduled"),)),
        Signal(
            "batch_tokens",
            (
                Source(
                    "nv_trt_llm_inflight_batcher_metrics",
                    where={"inflight_batcher_specific_metric": "total_context_tokens"},
                    plus=(_batcher("generation_requests"),),
                ),
            ),
        ),
        # Time of requests, not of devices: those in one batch share a second.
        Signal(
            "engine_busy_seconds",
            tuple(
                Source(
                    _TIMES.format(phase=phase),
                    where=_ON_A_DEVICE,
                    scale=_MICROSECOND,
                    word=f"compute_{phase}",
                    is_estimate=True,
                )
                for phase in ("input", "infer", "output")
            ),
        ),
        Signal(
            "time_to_first_token_seconds",
            (
                Source("vllm:time_to_first_token_seconds"),
                Source("nv_inference_first_response_histogram_ms", scale=0.001),
            ),
        ),
        spelled(
            "inter_token_latency_seconds", "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"
        ),
        Signal(
            "request_latency_seconds",
            (
                Source("vllm:e2e_request_latency_seconds"),
                Source("nv_inference_request_summary_us", scale=_MICROSECOND),
            ),
        ),
        spelled("queue_time_seconds", "nv_inference_queue_summary_us", scale=_MICROSECOND),
    ),
    required=("requests_finished",),
    model_labels=("model",),
    leaf_labels=("gpu_uuid",),
    leaf_names=("nv_trt_llm_", "nv_llm_", "vllm_"),
)
