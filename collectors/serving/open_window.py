"""One model and engine index in one window while it fills: whole numbers that add up, as `EngineWindowRow` says."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from collectors.serving.plain import histogram, number, text, whole
from collectors.serving.samples import merged
from fleet.telemetry import (
    LIST_TEXT_LIMIT,
    QUALITY_BITS,
    TEXT_LIMIT,
    EngineHistogramRow,
    EngineWindowRow,
    columns,
    quality_bits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collectors.samples import Flag
    from collectors.serving.samples import EngineSample, Histogram

Identity: TypeAlias = tuple[str, str, str | None, str | None]
"""Server, engine, model and engine index."""

COUNTED: Final[Mapping[str, str]] = {
    "prompt_tokens": "prompt_tokens",
    "prompt_tokens_cached": "prompt_cached_tokens",
    "prompt_tokens_computed": "prompt_computed_tokens",
    "generation_tokens": "generation_tokens",
    "finished_prompt_tokens": "finished_prompt_tokens",
    "finished_generation_tokens": "finished_generation_tokens",
    "prefix_query_tokens": "prefix_query_tokens",
    "prefix_hit_tokens": "prefix_hit_tokens",
    "requests_received": "received_requests",
    "requests_finished": "finished_requests",
    "requests_failed": "failed_requests",
    "requests_aborted": "aborted_requests",
    "preemptions": "preemption_events",
    "spec_drafts": "speculation_draft_events",
    "spec_draft_tokens": "speculation_draft_tokens",
    "spec_accepted_tokens": "speculation_accepted_tokens",
}
"""The counters of a sample that a window adds up, with their columns."""
_LARGEST: Final = 2**63 - 1
_LARGEST_MS: Final = 2**31 - 1
_SMALL: Final = ("busy_ms", "idle_ms", "prefill_busy_ms", "decode_busy_ms")
PHASES: Final = ("prefill", "decode")
"""Words of `engine_busy_seconds` that stand for device time of a phase; other words are the engine's own."""
_GIGA: Final = 1_000_000_000
_WHOLE: Final = ("start_second", "window_ms", "observed_ms", "scrape_count", "counter_resets")


def counted(sample: EngineSample) -> Iterator[tuple[str, float]]:
    """What a step added, by column; whole numbers but for times."""
    for name, column in COUNTED.items():
        value = getattr(sample, name)
        if value is None and name == "requests_finished" and sample.requests_finished_by_reason is not None:
            value = sum(sample.requests_finished_by_reason.values())
        if value is not None:
            yield column, value
    if (busy := sample.engine_busy_seconds) is not None:
        yield "busy_ms", sum(busy.values()) * 1000
        for phase in PHASES:
            if phase in busy:
                yield f"{phase}_busy_ms", busy[phase] * 1000
    if sample.estimated_flops is not None:
        yield "estimated_gigaflops", sample.estimated_flops / _GIGA
    if sample.engine_idle_seconds is not None:
        yield "idle_ms", sample.engine_idle_seconds * 1000


@dataclass(slots=True)
class Levels:
    """What stood during a step, in whole numbers; None is unknown."""

    running: int | None
    waiting: int | None
    kv_millionths: int | None
    is_asleep: bool | None

    @classmethod
    def of(cls, sample: EngineSample) -> Levels:
        """Those of a step's sample. Requests that were swapped out or paused neither run nor wait."""
        waiting = sample.requests_waiting
        if waiting is None and sample.requests_waiting_by_reason:
            waiting = sum(sample.requests_waiting_by_reason.values())
        ratio = sample.kv_used_ratio
        millionths = round(ratio * 1_000_000) if ratio is not None and 0 <= ratio <= 1 else None
        asleep = None if sample.sleep_state is None else sample.sleep_state != "awake"
        return cls(sample.requests_running, waiting, millionths, asleep)


@dataclass(slots=True)
class OpenEngineWindow:
    """What is known of a window so far."""

    start_second: int
    window_ms: int = 0
    observed_ms: int = 0
    scrape_count: int = 0
    counter_resets: int = 0
    sums: dict[str, int] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    newest: dict[str, Any] = field(default_factory=dict)
    flags: set[Flag] = field(default_factory=set)
    histograms: dict[tuple[str, tuple[float, ...]], Histogram] = field(default_factory=dict)
    sums_microunits: dict[tuple[str, tuple[float, ...]], int] = field(default_factory=dict)

    def add(self, column: str, amount: int) -> None:
        """Add to a sum. 0 is knowledge: nothing was added."""
        self.sums[column] = self.sums.get(column, 0) + amount

    def observe(self, levels: Levels, interval_ms: int, kv_used_ms: int | None) -> None:
        """Add an interval in which the engine was watched; `kv_used_ms` is its part of the cache's integral."""
        self.observed_ms += interval_ms
        for name, level in (("running", levels.running), ("waiting", levels.waiting)):
            if level is not None:
                self.add(f"{name}_observed_ms", interval_ms)
                self.add(f"{name}_request_ms", level * interval_ms)
                self._peak(f"{name}_max_requests", level)
        if kv_used_ms is not None and levels.kv_millionths is not None:
            self.add("kv_observed_ms", interval_ms)
            self.add("kv_used_ms", kv_used_ms)
            self._peak("kv_used_max_millionths", levels.kv_millionths)
        if levels.is_asleep is not None:
            self.add("asleep_ms", interval_ms if levels.is_asleep else 0)

    def see(self, sample: EngineSample) -> None:
        """Note a visit: what stands as it is, doubt, and what was observed since the visit before."""
        self.scrape_count += 1
        self.counter_resets += "reset" in sample.quality
        self.flags.update(sample.quality)
        load, counts_at = sample.model_load_seconds, sample.generation_counted
        offered = {
            "engine_version": sample.engine_version,
            "role": sample.role,
            "kv_capacity_tokens": sample.kv_capacity_tokens,
            "model_load_ms": None if load is None else round(load * 1000),
            "generation_is_at_finish": None if counts_at is None else counts_at == "at_finish",
        }
        self.newest |= {name: value for name, value in offered.items() if value is not None}

    def count(self, signal: str, seen: Histogram, sum_microunits: int) -> None:
        """Add observations to those of the same signal and layout."""
        key = signal, seen.bounds
        known = self.histograms.get(key)
        self.histograms[key] = seen if known is None else merged(known, seen)
        self.sums_microunits[key] = self.sums_microunits.get(key, 0) + sum_microunits

    def state(self) -> dict[str, Any]:
        """All of it as plain values for JSON."""
        whole = {name: getattr(self, name) for name in (*_WHOLE, "sums", "peaks", "newest")}
        return whole | {
            "flags": sorted(self.flags),
            "histograms": [
                [signal, list(bounds), list(h.counts), h.sum, h.count, self.sums_microunits[signal, bounds]]
                for (signal, bounds), h in self.histograms.items()
            ],
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> OpenEngineWindow:
        """The window that a state holds. KeyError, TypeError or ValueError if it holds none."""
        start, window_ms, observed_ms, scrapes, resets = (whole(state[name]) for name in _WHOLE)
        window, kinds = cls(start, window_ms, observed_ms, scrapes, resets), _kinds()
        window.sums = {name: whole(value) for name, value in state["sums"].items() if kinds.get(name) is int}
        window.peaks = {name: whole(value) for name, value in state["peaks"].items() if kinds.get(name) is int}
        for name, value in state["newest"].items():
            if type(value) is kinds.get(name):
                window.newest[name] = value[:TEXT_LIMIT] if isinstance(value, str) else value
        window.flags = {flag for flag in state["flags"] if flag in QUALITY_BITS}
        for signal, bounds, counts, total, count, microunits in state["histograms"]:
            key = text(signal), tuple(map(number, bounds))
            window.histograms[key] = histogram(total, count, bounds, counts)
            window.sums_microunits[key] = whole(microunits)
        return window

    def _peak(self, column: str, level: int) -> None:
        self.peaks[column] = max(level, self.peaks.get(column, level))

    def rows(self, identity: Identity) -> Iterator[EngineWindowRow | EngineHistogramRow]:
        """The window as it goes to the lake. One number that no column holds must not cost the batch."""
        server, engine, model, index = identity
        offered = self.sums | self.peaks | self.newest
        values = {name: value for name, value in offered.items() if _fits(name, value)}
        flags = self.flags | ({"rejected"} if len(values) < len(offered) else set())
        yield EngineWindowRow(
            server=server,
            engine=engine,
            model=model,
            engine_index=index,
            window_start_second=self.start_second,
            window_ms=self.window_ms,
            observed_ms=self.observed_ms,
            scrape_count=self.scrape_count,
            counter_resets=self.counter_resets,
            quality_bits=quality_bits(flags),
            **values,
        )
        for (signal, bounds), seen in self.histograms.items():
            total = self.sums_microunits[signal, bounds]
            if not 0 <= total <= _LARGEST or not 0 <= seen.count <= _LARGEST:
                continue
            layout, counts = ",".join(map(_number, bounds)), ",".join(map(str, seen.counts))
            is_whole = max(len(layout), len(counts)) <= LIST_TEXT_LIMIT
            yield EngineHistogramRow(
                server=server,
                engine=engine,
                engine_version=self.newest.get("engine_version"),
                model=model,
                engine_index=index,
                role=self.newest.get("role"),
                window_start_second=self.start_second,
                signal=signal,
                bounds=layout if is_whole else "",
                counts=counts if is_whole else "",
                sum_microunits=total,
                count=seen.count,
            )


@cache
def _kinds() -> Mapping[str, type[int | str | bool]]:
    """What each column holds. A name that another version kept is none."""
    return {column.name: column.kind for column in columns("engine_window")}


def _fits(name: str, value: Any) -> bool:
    if not isinstance(value, int):
        return True
    return 0 <= value <= (_LARGEST_MS if name in _SMALL else _LARGEST)


def _number(bound: float) -> str:
    return str(bound).removesuffix(".0")
