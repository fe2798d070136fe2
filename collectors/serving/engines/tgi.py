"""Text Generation Inference 3.3, the last line of it: its router's page, which names no model.

Names are those of the router's source. Counters have no `_total` and seconds no suffix; a series is there from its
first use on, so a missing one is unknown. The share of the cache in use is not told: what the current batch may grow
to (`tgi_batch_current_max_tokens`) is no measure of it.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.mapping import EngineMapping, Signal, Source

_FAILURE = "tgi_request_failure"

TGI: Final = EngineMapping(
    kind="tgi",
    signals=(
        spelled("requests_running", "tgi_batch_current_size"),
        spelled("requests_waiting", "tgi_queue_size"),
        spelled("kv_capacity_tokens", "tgi_batch_max_total_tokens"),
        # Counted when a request is checked, before it is let in: those turned away afterwards are in it.
        spelled("prompt_tokens", "tgi_request_input_length_sum", is_estimate=True),
        spelled("generation_tokens", "tgi_request_generated_tokens_sum", at_finish=True),
        spelled("finished_generation_tokens", "tgi_request_generated_tokens_sum"),
        spelled("requests_received", "tgi_request_count"),
        spelled("requests_finished", "tgi_request_success"),
        Signal(
            "requests_failed",
            (Source(_FAILURE, where={"err": "validation|overloaded|generation|incomplete|template"}),),
        ),
        Signal("requests_aborted", (Source(_FAILURE, where={"err": "dropped"}),)),
        spelled("batch_size", "tgi_batch_current_size"),
        Signal("engine_busy_seconds", (Source("tgi_batch_forward_duration_sum", by="method"),)),
        spelled("request_time_per_token_seconds", "tgi_request_mean_time_per_token_duration"),
        spelled("request_latency_seconds", "tgi_request_duration"),
        spelled("queue_time_seconds", "tgi_request_queue_duration"),
    ),
    required=("requests_waiting", "requests_finished"),
    model_labels=(),
)
