"""llama.cpp's server, with `--metrics`: its page has no labels at all and names no model.

In router mode the page wants `?model=NAME` in its address and answers 400 without. `prompt_tokens_total` counts what
was computed, without what came from the cache. `n_tokens_max` and `n_busy_slots_per_decode` say that they are
counters and are neither that nor gauges of now: left out. The share of the cache in use went with
ggml-org/llama.cpp#13660.
"""

from __future__ import annotations

from typing import Final

from collectors.serving.engines.signals import spelled
from collectors.serving.mapping import EngineMapping, Signal, Source


def _one(signal: str, name: str, *, at_finish: bool = False) -> Signal:
    return spelled(signal, f"llamacpp:{name}", at_finish=at_finish)


LLAMACPP: Final = EngineMapping(
    kind="llamacpp",
    signals=(
        _one("requests_running", "requests_processing"),
        _one("requests_waiting", "requests_deferred"),
        _one("kv_used_ratio", "kv_cache_usage_ratio"),
        _one("prompt_tokens_computed", "prompt_tokens_total"),
        _one("generation_tokens", "tokens_predicted_total", at_finish=True),
        # Time of slots, not of the device: slots that work side by side share a second.
        Signal(
            "engine_busy_seconds",
            (
                Source("llamacpp:prompt_seconds_total", word="prompt", is_estimate=True),
                Source("llamacpp:tokens_predicted_seconds_total", word="predicted", is_estimate=True),
            ),
        ),
    ),
    required=("requests_running",),
    model_labels=(),
    bad_request="llama.cpp in router mode wants to be asked for one model (`?model=NAME` in the address)",
)
