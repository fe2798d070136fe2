"""What a model server yields: one row per server, model and engine index, and what was refused.

A field is None when its engine does not offer it or said nothing that can be believed; never 0. A row whose
`engine_index` is None tells of all engines of its server at once; each value stands in one row only, so a plain sum
over the rows of a server is right, for all fields but ratios, capacities of a shared cache and texts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collectors.samples import Flag, Rejected

Role = Literal["prefill", "decode", "unified"]


class Quantile(NamedTuple):
    """A quantile; above the highest bound of its histogram only that bound is known, and it is at least that."""

    value: float
    is_at_least: bool


@dataclass(frozen=True, slots=True)
class Histogram:
    """Observations by size. `counts` are per bucket, not running totals, with one more than `bounds` for the rest.

    Engines changed their bounds over time, and users set their own. Where histograms with different bounds are
    added up, `bounds` and `counts` are empty and only `sum` and `count` are known.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float
    count: int

    def quantile(self, share: float) -> Quantile | None:
        """The value below which a share (0 to 1) of the observations lies, by straight lines inside a bucket.

        The method of Prometheus' histogram_quantile. None without observations or bounds.
        """
        total = sum(self.counts)
        if not total or not self.bounds:
            return None
        rank, below, low = share * total, 0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            if count and below + count >= rank:
                return Quantile(low + (bound - low) * max(0.0, rank - below) / count, is_at_least=False)
            below += count
            low = bound
        return Quantile(self.bounds[-1], is_at_least=True)


def merged(first: Histogram, second: Histogram) -> Histogram:
    """Two histograms added up; the buckets only where both have the same bounds."""
    is_same = first.bounds == second.bounds
    return Histogram(
        bounds=first.bounds if is_same else (),
        counts=tuple(a + b for a, b in zip(first.counts, second.counts, strict=True)) if is_same else (),
        sum=first.sum + second.sum,
        count=first.count + second.count,
    )


@dataclass(slots=True, kw_only=True)
class EngineSample:
    """One engine at one moment, or over one step. Nobody changes one: `replace` makes another.

    `counters` says what the counters mean: their total as it stands (since the engine began), or what was added
    since the page before; `interval_seconds` is the length of that step. The counters are the fields of COUNTERS and
    the histograms. `server` is who answers (a target's name, or the address of its page).
    """

    engine: str
    server: str
    model: str | None = None
    engine_index: str | None = None
    engine_version: str | None = None
    role: Role | None = None
    """What the engine does of a request; `unified` is all of it, None is not said."""
    counters: Literal["total", "delta"] = "total"
    ts_nanoseconds: int | None = None
    interval_seconds: float | None = None
    requests_running: int | None = None
    requests_waiting: int | None = None
    requests_waiting_by_reason: dict[str, int] | None = None
    """A key is the engine's own word; empty where it gives none."""
    requests_swapped_or_paused: int | None = None
    kv_used_ratio: float | None = None
    kv_capacity_tokens: int | None = None
    prefix_query_tokens: int | None = None
    prefix_hit_tokens: int | None = None
    prompt_tokens: int | None = None
    """Cached ones included; of all requests, those given up included."""
    prompt_tokens_cached: int | None = None
    prompt_tokens_computed: int | None = None
    generation_tokens: int | None = None
    """What the engine generated, for requests given up too; see `generation_counted`."""
    generation_counted: Literal["live", "at_finish"] | None = None
    """Whether tokens count as they are made, or all at once when their request ends: then a long one looks idle."""
    finished_prompt_tokens: int | None = None
    """The prompt tokens of requests that ended well: less than `prompt_tokens`, and once per answer asked for."""
    finished_generation_tokens: int | None = None
    requests_received: int | None = None
    """Requests that arrived, those turned away included: attempts, not work."""
    requests_finished: int | None = None
    """Requests that ended, by whichever of the reasons beside it."""
    requests_finished_by_reason: dict[str, int] | None = None
    requests_failed: int | None = None
    requests_aborted: int | None = None
    preemptions: int | None = None
    spec_drafts: int | None = None
    spec_draft_tokens: int | None = None
    spec_accepted_tokens: int | None = None
    lora_active: tuple[str, ...] | None = None
    """Adapters with requests in the engine now; presence only, never to be billed by."""
    model_load_seconds: float | None = None
    batch_size: int | None = None
    batch_tokens: int | None = None
    engine_busy_seconds: dict[str, float] | None = None
    """Time computed. `prefill` and `decode` are device time of that phase; other words are the engine's own."""
    engine_idle_seconds: float | None = None
    sleep_state: str | None = None
    estimated_flops: int | None = None
    """Floating point operations per GPU, as the engine estimates them where it is told to."""
    histograms: dict[str, Histogram] = field(default_factory=dict)
    """By the names of HISTOGRAMS; one that is not there is unknown."""
    quality: tuple[Flag, ...] = ()

    @property
    def billed_prompt_tokens(self) -> int | None:
        """Prompt tokens to count for a server whose prefill and decode run apart: both count the same prompts."""
        return 0 if self.role == "decode" else self.prompt_tokens

    @property
    def billed_generation_tokens(self) -> int | None:
        """Generated tokens to count where prefill and decode run apart: prefill makes one that decode makes again."""
        return 0 if self.role == "prefill" else self.generation_tokens

    @property
    def decode_share(self) -> float | None:
        """The share of decode in the time that requests spent in prefill and decode; None if either is unknown.

        These are seconds of requests, not of devices: requests in one batch share a second.
        """
        prefill, decode = self.histograms.get("prefill_time_seconds"), self.histograms.get("decode_time_seconds")
        if prefill is None or decode is None or prefill.sum + decode.sum <= 0:
            return None
        return decode.sum / (prefill.sum + decode.sum)


COUNTERS = (
    "prefix_query_tokens", "prefix_hit_tokens", "prompt_tokens", "prompt_tokens_cached", "prompt_tokens_computed",
    "generation_tokens", "finished_prompt_tokens", "finished_generation_tokens", "requests_received",
    "requests_finished", "requests_finished_by_reason", "requests_failed", "requests_aborted", "preemptions",
    "spec_drafts", "spec_draft_tokens", "spec_accepted_tokens", "engine_busy_seconds", "engine_idle_seconds",
    "estimated_flops",
)  # fmt: skip
"""The fields that only grow until the engine starts again, beside the histograms."""

HISTOGRAMS = (
    "time_to_first_token_seconds", "inter_token_latency_seconds", "request_time_per_token_seconds",
    "request_latency_seconds", "queue_time_seconds", "prefill_time_seconds", "decode_time_seconds",
    "step_tokens",
)  # fmt: skip
"""Histograms by name. Time between tokens is per token or per request: two signals. `step_tokens` is per batch."""


@dataclass(frozen=True, slots=True)
class ServingReading:
    """What one visit to a model server yielded, or the step between two.

    `required_missing` are signals that such an engine always has and that are not on the page; `series_deduped`
    counts copies that were left out; `counter_resets` counts series that began again, `new_series` those whose
    beginning is not known, so that they count from here on. `passed_on` are models and engine indices that have a row
    in counters as they stand, and none in steps: other models of the server count the same requests.
    """

    samples: tuple[EngineSample, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    required_missing: tuple[str, ...] = ()
    families_known: int = 0
    series_deduped: int = 0
    counter_resets: int = 0
    new_series: int = 0
    passed_on: tuple[tuple[str | None, str | None], ...] = ()
