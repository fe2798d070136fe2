"""SGLang 0.4.2 to 0.5.23.

Names and labels are those of its own sources. Two kinds of series: those of the tokenizer (requests, tokens; labels
of the model only) and those of schedulers (queues, cache, engine time; with ranks). Left out on purpose:
`cache_hit_rate`, which is set to 0 at each log line (sgl-project/sglang#5625), and throughput averages.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.mapping import Dedupe, EngineMapping, Signal, Source, VersionEndpoint

_LIVE = "sglang:realtime_tokens_total"
_CACHED = "sglang:cached_tokens_total"
# The names of its forward modes, which older versions put a word before. Verifying drafts is a step of decode; a batch
# that mixes both phases is neither.
_PHASES = {
    f"{before}{mode}": phase
    for before in ("", "forward_")
    for mode, phase in (
        ("extend", "prefill"),
        ("prefill", "prefill"),
        ("decode", "decode"),
        ("target_verify", "decode"),
    )
}


def _one(name: str, *spellings: str, at_finish: bool = False) -> Signal:
    return Signal(name, tuple(Source(f"sglang:{spelling}", at_finish=at_finish) for spelling in spellings))


def _live(mode: str) -> Source:
    return Source(_LIVE, where={"mode": mode})


SGLANG: Final = EngineMapping(
    kind="sglang",
    signals=(
        _one("requests_running", "num_running_reqs"),
        _one("requests_waiting", "num_queue_reqs"),
        Signal(
            "requests_waiting_by_reason",
            (
                Source("sglang:num_queue_reqs", word="queue"),
                Source("sglang:num_grammar_queue_reqs", word="grammar"),
                Source("sglang:num_prefill_prealloc_queue_reqs", word="prefill_prealloc"),
                Source("sglang:num_prefill_inflight_queue_reqs", word="prefill_inflight"),
                Source("sglang:num_decode_prealloc_queue_reqs", word="decode_prealloc"),
                Source("sglang:num_decode_transfer_queue_reqs", word="decode_transfer"),
            ),
        ),
        Signal(
            "requests_swapped_or_paused",
            (
                Source("sglang:num_paused_reqs", plus=(Source("sglang:num_retracted_reqs"),)),
                Source("sglang:num_retracted_reqs"),
            ),
        ),
        # The largest of the pools, which is the one that fills up.
        _one("kv_used_ratio", "token_usage", "full_token_usage"),
        Signal(
            "kv_capacity_tokens",
            (
                Source("sglang:max_total_num_tokens"),
                Source("sglang:num_pages", times=(Source("sglang:page_size"),)),
                Source(
                    "sglang:cache_config_info",
                    label="num_pages",
                    times=(Source("sglang:cache_config_info", label="page_size"),),
                ),
            ),
            combine="max",
        ),
        _one("prefix_query_tokens", "prompt_tokens_total"),
        Signal("prefix_hit_tokens", (Source(_CACHED),)),
        Signal("prompt_tokens", (_live("prefill_(compute|cache)"), Source("sglang:prompt_tokens_total"))),
        Signal("prompt_tokens_cached", (_live("prefill_cache"), Source(_CACHED))),
        Signal("prompt_tokens_computed", (_live("prefill_compute"),)),
        Signal(
            "generation_tokens",
            (_live("decode"), Source("sglang:generation_tokens_total", at_finish=True)),
        ),
        _one("finished_prompt_tokens", "prompt_tokens_total"),
        _one("finished_generation_tokens", "generation_tokens_total"),
        _one("requests_finished", "num_requests_total"),
        Signal(
            "requests_failed",
            (Source("sglang:http_responses_total", where={"status_code": "5.."}),),
        ),
        _one("requests_aborted", "num_aborted_requests_total", "num_aborted_requests"),
        _one("preemptions", "num_retracted_requests_total"),
        _one("batch_tokens", "decode_sum_seq_lens"),
        Signal(
            "model_load_seconds",
            (
                Source("sglang:startup_time_seconds", where={"phase": "load_weight"}),
                Source("sglang:engine_load_weights_time"),
            ),
            combine="max",
        ),
        Signal(
            "engine_busy_seconds",
            (
                Source("sglang:forward_execution_seconds_total", by="category", words=_PHASES),
                Source("sglang:gpu_execution_seconds_total", by="category", words=_PHASES),
            ),
            # Unless it is told to time its devices, they stand at 0 or are not there.
            zero_is_unknown=True,
        ),
        _one("engine_idle_seconds", "scheduler_idle_seconds_total"),
        Signal("estimated_flops", (Source("sglang:estimated_flops_per_gpu_total"),), zero_is_unknown=True),
        _one("time_to_first_token_seconds", "time_to_first_token_seconds"),
        _one("inter_token_latency_seconds", "inter_token_latency_seconds"),
        _one("request_time_per_token_seconds", "request_time_per_output_token_seconds"),
        _one("request_latency_seconds", "e2e_request_latency_seconds"),
        _one("queue_time_seconds", "queue_time_seconds"),
    ),
    required=("requests_running", "kv_used_ratio"),
    index_labels=("dp_rank",),
    role_labels=("engine_type",),
    roles={"unified": "unified", "prefill": "prefill", "decode": "decode"},
    # A series with an empty priority is the total of those with one; each rank of a tensor- or pipeline-parallel
    # group shows the same requests.
    dedupe=(
        Dedupe("pid", "max"),
        Dedupe("priority", "empty"),
        Dedupe("tp_rank", "lowest"),
        Dedupe("moe_ep_rank", "lowest"),
        Dedupe("pp_rank", "lowest"),
    ),
    version_endpoints=(VersionEndpoint("/server_info"), VersionEndpoint("/get_server_info")),
)
