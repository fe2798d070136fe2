"""Put model servers into the catalogue's series, for the node's metrics page.

Counters are those of the engine as they stand, so they fall when it starts again: whoever reads a page knows that of
counters. What is not known is no series. All series of one call differ, whatever the engine's page says: a row that is
told twice counts as told first, and words that become the same are added up.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fleet.catalogue_serving import SERVING_METRICS
from fleet.errors import one_line
from fleet.measurement import Buckets, Measurement, histogram
from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from collectors.serving.collector import Visit
    from collectors.serving.samples import EngineSample, Histogram

_METRICS: Final = {metric.name.removeprefix("gputally_serving_"): metric for metric in SERVING_METRICS}
_PLAIN: Final[Mapping[str, str]] = {
    "running_requests": "requests_running",
    "paused_requests": "requests_swapped_or_paused",
    "kv_used_ratio": "kv_used_ratio",
    "kv_capacity_tokens": "kv_capacity_tokens",
    "prefix_query_tokens_total": "prefix_query_tokens",
    "prefix_hit_tokens_total": "prefix_hit_tokens",
    "prompt_tokens_total": "prompt_tokens",
    "prompt_cached_tokens_total": "prompt_tokens_cached",
    "prompt_computed_tokens_total": "prompt_tokens_computed",
    "failed_requests_total": "requests_failed",
    "aborted_requests_total": "requests_aborted",
    "preemption_events_total": "preemptions",
    "speculation_events_total": "spec_drafts",
    "speculation_draft_tokens_total": "spec_draft_tokens",
    "speculation_accepted_tokens_total": "spec_accepted_tokens",
    "model_load_seconds": "model_load_seconds",
    "batch_requests": "batch_size",
    "batch_tokens": "batch_tokens",
    "engine_idle_seconds_total": "engine_idle_seconds",
}
_DOUBTED: Final = (
    "requests_running", "requests_waiting", "requests_waiting_by_reason", "requests_swapped_or_paused",
    "kv_used_ratio", "batch_size", "batch_tokens",
)  # fmt: skip
MOST_ROWS: Final = 256
"""Models and engine indices of one server that the page shows; clients can make up names of models."""
_MOST_WORDS: Final = 64


def measured_visit(visit: Visit) -> Iterator[Measurement]:
    """The series of one visit to a server: totals, and of what stands only what the step does not contradict."""
    step = {(row.model, row.engine_index): row for row in visit.step.samples} if visit.step else {}
    yield from measured_engines(_doubted(row, step.get((row.model, row.engine_index))) for row in visit.totals.samples)


def measured_engines(samples: Iterable[EngineSample]) -> Iterator[Measurement]:
    """The series of rows as they stand, counters as totals."""
    told: set[tuple[str, ...]] = set()
    for sample in samples:
        place = tuple(map(_label, (sample.server, sample.engine, sample.model, sample.engine_index)))
        if place in told or len(told) >= MOST_ROWS:
            continue
        told.add(place)
        yield Measurement(_METRICS["engine_info"], (*place, _label(sample.engine_version)), 1)
        for name, field in _PLAIN.items():
            yield from _maybe(name, place, getattr(sample, field))
        if sample.generation_counted:
            yield from _maybe("generation_tokens_total", (*place, sample.generation_counted), sample.generation_tokens)
        yield from _by_word("waiting_requests", place, sample.requests_waiting, sample.requests_waiting_by_reason)
        finished, by_reason = sample.requests_finished, sample.requests_finished_by_reason
        yield from _by_word("finished_requests_total", place, finished, by_reason)
        yield from _by_word("engine_busy_seconds_total", place, None, sample.engine_busy_seconds)
        for adapter in dict.fromkeys(map(_label, (sample.lora_active or ())[:_MOST_WORDS])):
            yield Measurement(_METRICS["lora_active_info"], (*place, adapter), 1)
        for signal, observed in sample.histograms.items():
            yield from _histogram(signal, place, observed)


def _doubted(total: EngineSample, step: EngineSample | None) -> EngineSample:
    """A gauge that a step takes out (it stands at 0 while tokens are made) is unknown on the page too."""
    return total if step is None else replace(total, **{name: getattr(step, name) for name in _DOUBTED})


def _by_word(
    name: str, place: tuple[str, ...], total: float | None, words: Mapping[str, float] | None
) -> Iterator[Measurement]:
    """One series per word where the words say all that the total does, else one without a word."""
    if not words or len(words) > _MOST_WORDS or (total is not None and sum(words.values()) != total):
        yield from _maybe(name, (*place, ""), total)
        return
    added: dict[str, float] = {}
    for word, value in words.items():
        added[_label(word)] = added.get(_label(word), 0) + value
    for word, value in added.items():
        yield from _maybe(name, (*place, word), value)


def _histogram(signal: str, place: tuple[str, ...], observed: Histogram) -> Iterator[Measurement]:
    """One whose bounds are not known still has a sum and a count."""
    metric = _METRICS.get(signal)
    if metric is None or metric.kind != "histogram" or not math.isfinite(observed.sum):
        return
    is_whole = len(observed.counts) == len(observed.bounds) + 1 and sum(observed.counts) == observed.count
    counts = observed.counts if is_whole else (observed.count,)
    yield histogram(metric, place, Buckets(observed.bounds if is_whole else (), counts, observed.sum))


def _maybe(name: str, labels: tuple[str, ...], value: float | None) -> Iterator[Measurement]:
    if value is not None and math.isfinite(value):
        yield Measurement(_METRICS[name], labels, value)


def _label(text: str | None) -> str:
    """A text as a label's value: of one line, without characters that act, and bounded."""
    return one_line(text[:TEXT_LIMIT])[:TEXT_LIMIT] if text else ""
