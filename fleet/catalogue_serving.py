"""Metrics of model servers, under one vocabulary for every engine.

Series are per server, engine, model and engine index. `engine` comes from configuration or
discovery, never from guessing at names, for two engines may expose the same one. Hit ratios
and acceptance rates are left out on purpose: the quotient of two counters can be summed over
replicas, an averaged gauge cannot. Of a server in a pod the engine index begins with the pod's
name, so replicas on one node are told apart and sums over a server stay right.

Series of gateways are per server, gateway, pod (empty outside of one), tenant and the model that
the client asked for. They are what the gateway counts, for watching: costs are shared by its log.
"""

from fleet.metric import Metric

_ENGINE = ("server", "engine", "model", "engine_index")
_GATEWAY = ("server", "gateway", "pod", "tenant", "model")

SERVING_METRICS: tuple[Metric, ...] = (
    Metric("gputally_serving_engine_info", "info", "", (*_ENGINE, "engine_version"),
           "Identity of a serving engine."),
    Metric("gputally_serving_running_requests", "gauge", "requests", _ENGINE,
           "Requests being executed now."),
    Metric("gputally_serving_waiting_requests", "gauge", "requests", (*_ENGINE, "reason"),
           "Requests admitted and not yet executing; reason is empty where the engine gives none."),
    Metric("gputally_serving_paused_requests", "gauge", "requests", _ENGINE,
           "Requests swapped out, retracted or paused."),
    Metric("gputally_serving_kv_used_ratio", "gauge", "ratio", _ENGINE,
           "Share of the key-value cache in use."),
    Metric("gputally_serving_kv_capacity_tokens", "gauge", "tokens", _ENGINE,
           "Tokens the key-value cache can hold."),
    Metric("gputally_serving_prefix_query_tokens_total", "counter", "tokens", _ENGINE,
           "Tokens looked up in the prefix cache."),
    Metric("gputally_serving_prefix_hit_tokens_total", "counter", "tokens", _ENGINE,
           "Tokens found in the prefix cache."),
    Metric("gputally_serving_prompt_tokens_total", "counter", "tokens", _ENGINE,
           "Prompt tokens, cached ones included."),
    Metric("gputally_serving_prompt_cached_tokens_total", "counter", "tokens", _ENGINE,
           "Prompt tokens taken from a cache."),
    Metric("gputally_serving_prompt_computed_tokens_total", "counter", "tokens", _ENGINE,
           "Prompt tokens that were computed: all less the cached ones."),
    Metric("gputally_serving_generation_tokens_total", "counter", "tokens", (*_ENGINE, "counted"),
           "Tokens generated; counted is live (at each step) or at_finish (when the request ends)."),
    Metric("gputally_serving_finished_requests_total", "counter", "requests", (*_ENGINE, "reason"),
           "Requests that ended, by the engine's reason."),
    Metric("gputally_serving_failed_requests_total", "counter", "requests", _ENGINE,
           "Requests that ended in an error."),
    Metric("gputally_serving_aborted_requests_total", "counter", "requests", _ENGINE,
           "Requests that the caller or the engine gave up."),
    Metric("gputally_serving_preemption_events_total", "counter", "events", _ENGINE,
           "Times a running request lost its place to another."),
    Metric("gputally_serving_time_to_first_token_seconds", "histogram", "seconds", _ENGINE,
           "Time from arrival to the first token."),
    Metric("gputally_serving_inter_token_latency_seconds", "histogram", "seconds", _ENGINE,
           "Time between two tokens, one observation per token."),
    Metric("gputally_serving_request_time_per_token_seconds", "histogram", "seconds", _ENGINE,
           "Mean time per output token, one observation per request."),
    Metric("gputally_serving_request_latency_seconds", "histogram", "seconds", _ENGINE,
           "Time from arrival to the last token."),
    Metric("gputally_serving_queue_time_seconds", "histogram", "seconds", _ENGINE,
           "Time a request waited in the engine."),
    Metric("gputally_serving_prefill_time_seconds", "histogram", "seconds", _ENGINE,
           "Time a request spent in prefill."),
    Metric("gputally_serving_decode_time_seconds", "histogram", "seconds", _ENGINE,
           "Time a request spent in decode."),
    Metric("gputally_serving_speculation_events_total", "counter", "events", _ENGINE,
           "Drafts that speculative decoding proposed; accepted tokens per draft is the gain."),
    Metric("gputally_serving_speculation_draft_tokens_total", "counter", "tokens", _ENGINE,
           "Tokens proposed by speculative decoding."),
    Metric("gputally_serving_speculation_accepted_tokens_total", "counter", "tokens", _ENGINE,
           "Proposed tokens that were accepted."),
    Metric("gputally_serving_lora_active_info", "info", "", (*_ENGINE, "adapter"),
           "A LoRA adapter with requests in the engine now."),
    Metric("gputally_serving_model_load_seconds", "gauge", "seconds", _ENGINE,
           "Time the last load of the model took."),
    Metric("gputally_serving_batch_requests", "gauge", "requests", _ENGINE,
           "Requests in the current batch."),
    Metric("gputally_serving_batch_tokens", "gauge", "tokens", _ENGINE,
           "Tokens in the current batch."),
    Metric("gputally_serving_engine_busy_seconds_total", "counter", "seconds", (*_ENGINE, "phase"),
           "Time the engine computed, by phase."),
    Metric("gputally_serving_engine_idle_seconds_total", "counter", "seconds", _ENGINE,
           "Time the engine held its devices and had nothing to compute."),
)  # fmt: skip
"""In the order of the canonical vocabulary: load, cache, tokens, outcomes, latencies, waste."""

GATEWAY_METRICS: tuple[Metric, ...] = (
    Metric("gputally_gateway_prompt_tokens_total", "counter", "tokens", _GATEWAY,
           "Prompt tokens, cached ones included."),
    Metric("gputally_gateway_prompt_cached_tokens_total", "counter", "tokens", _GATEWAY,
           "Prompt tokens taken from a cache."),
    Metric("gputally_gateway_generation_tokens_total", "counter", "tokens", _GATEWAY,
           "Tokens generated."),
    Metric("gputally_gateway_received_requests_total", "counter", "requests", _GATEWAY,
           "Requests that arrived, those turned away included."),
    Metric("gputally_gateway_finished_requests_total", "counter", "requests", _GATEWAY,
           "Requests that were answered well."),
    Metric("gputally_gateway_failed_requests_total", "counter", "requests", _GATEWAY,
           "Requests that ended in an error."),
    Metric("gputally_gateway_running_requests", "gauge", "requests", _GATEWAY,
           "Requests under way now."),
    Metric("gputally_gateway_waiting_requests", "gauge", "requests", _GATEWAY,
           "Requests that wait now."),
)  # fmt: skip
"""Without tenant and model stands what names none, and what is beyond the rows that a page may have."""
