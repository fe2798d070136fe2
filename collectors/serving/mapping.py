"""The mapping of an engine as data: which of its series are which canonical signal.

What kind a signal is stands here, under KINDS, not on the page: the types that pages declare are wrong too often
(counters declared gauges, histograms named `_total`). Names are written as the engine's own source has them; a colon
and an underscore are the same, and a `ray_` in front is nothing (`plain_name`).

To add an engine: a module in `engines` with one EngineMapping, a line in `engines/__init__`, a recorded page and the
rows that it must yield.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collectors.serving.samples import Role

Kind: TypeAlias = Literal["counter", "counters", "gauge", "gauges", "ratio", "seconds", "histogram", "names", "state"]
Combine: TypeAlias = Literal["sum", "max"]
Version: TypeAlias = tuple[int, ...]

_NUMBERS: Final = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,3})")

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "requests_running": "gauge",
        "requests_waiting": "gauge",
        "requests_waiting_by_reason": "gauges",
        "requests_swapped_or_paused": "gauge",
        "kv_used_ratio": "ratio",
        "kv_capacity_tokens": "gauge",
        "prefix_query_tokens": "counter",
        "prefix_hit_tokens": "counter",
        "prompt_tokens": "counter",
        "prompt_tokens_cached": "counter",
        "prompt_tokens_computed": "counter",
        "generation_tokens": "counter",
        "finished_prompt_tokens": "counter",
        "finished_generation_tokens": "counter",
        "requests_received": "counter",
        "requests_finished": "counter",
        "requests_finished_by_reason": "counters",
        "requests_failed": "counter",
        "requests_aborted": "counter",
        "preemptions": "counter",
        "spec_drafts": "counter",
        "spec_draft_tokens": "counter",
        "spec_accepted_tokens": "counter",
        "lora_active": "names",
        "model_load_seconds": "seconds",
        "batch_size": "gauge",
        "batch_tokens": "gauge",
        "engine_busy_seconds": "counters",
        "engine_idle_seconds": "counter",
        "sleep_state": "state",
        "estimated_flops": "counter",
        "time_to_first_token_seconds": "histogram",
        "inter_token_latency_seconds": "histogram",
        "request_time_per_token_seconds": "histogram",
        "request_latency_seconds": "histogram",
        "queue_time_seconds": "histogram",
        "prefill_time_seconds": "histogram",
        "decode_time_seconds": "histogram",
        "step_tokens": "histogram",
    }
)
"""Each canonical signal and its kind.

`gauge` and `counter` are whole numbers (but for names that end in `_seconds`), `gauges` and `counters` are by a word,
`ratio` lies in 0 to 1, `seconds` is a gauge with fractions. `names` is the newest of series whose value is a time and
whose labels list names; `state` is the word of the one series that is not 0.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """One spelling of a signal: a series name, and what its values mean.

    - `name`: of the series (`X_sum` for the sum of a histogram); for a `histogram` signal the name without suffix.
    - `where`: labels that must match, each a regular expression for the whole value; an absent label is "".
    - `scale`: what a value is multiplied by to be in base units (0.001 for milliseconds).
    - `label`: take the number (or the names, or the state) from this label instead of the value.
    - `more_labels`: further labels with names, for `names`.
    - `by`: for `counters` and `gauges`, the label whose value is the word; `words` rewrites some of them. Without
      `by`, `word` is the word for the whole source.
    - `plus`, `minus`: other series, added and taken away where they are there, row by row. Not aliases.
    - `times`: other series of the same row by which it is multiplied (blocks x tokens per block): unknown without.
    - `since`, `before`: the engine versions whose series mean this, e.g. "0.9". A source with either is not used
      while the version is not known.
    - `at_finish`: tokens count when a request ends, not as they are made.
    - `is_estimate`: close to the signal, not the same; marks the row `estimated`.
    """

    name: str
    where: Mapping[str, str] = field(default_factory=dict)
    scale: float = 1
    label: str | None = None
    more_labels: tuple[str, ...] = ()
    by: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    word: str = ""
    plus: tuple[Source, ...] = ()
    minus: tuple[Source, ...] = ()
    times: tuple[Source, ...] = ()
    since: str | None = None
    before: str | None = None
    at_finish: bool = False
    is_estimate: bool = False

    def parts(self) -> Iterator[Source]:
        """This source and every one that it refers to."""
        yield self
        for part in (*self.plus, *self.minus, *self.times):
            yield from part.parts()

    def fits(self, version: Version | None, at_least: Version | None) -> bool:
        """Whether it holds for an engine of a version, or of one not known of which a lowest one is."""
        newest = version or at_least
        if self.since and (newest is None or newest < _numbers(self.since)):
            return False
        return not self.before or (version is not None and version < _numbers(self.before))


@dataclass(frozen=True, slots=True)
class Signal:
    """A canonical signal and its sources: the first that is on the page is taken, aliases are never added up.

    For `counters` and `gauges` the first of each `word` is taken, and all words together are the signal. `combine`
    is how the series of one row become one value (None: the largest of a ratio, the sum of all else).
    `zero_is_unknown` is for what stands at 0 where it is switched off.
    """

    name: str
    sources: tuple[Source, ...]
    combine: Combine | None = None
    zero_is_unknown: bool = False

    @property
    def kind(self) -> Kind:
        """What kind it is."""
        return KINDS[self.name]


@dataclass(frozen=True, slots=True)
class Dedupe:
    """A label by which an engine shows the same thing several times; applied in the order of the mapping.

    `max`: a gauge is the largest of its copies, counters are added up (one per process). `empty`: the series with an
    empty label is the total and the others its parts, which are left out. `lowest`: the copy with the lowest number.
    """

    label: str
    keep: Literal["max", "empty", "lowest"]


@dataclass(frozen=True, slots=True)
class VersionEndpoint:
    """Where an engine tells its version: a path on its own port, and the key in the JSON object there."""

    path: str
    key: str = "version"


@dataclass(frozen=True, slots=True)
class EngineMapping:
    """An engine: its signals, and what its labels mean.

    - `required`: signals that each page of this engine has. A page with none of them is no page of it.
    - `model_labels`, `index_labels`, `role_labels`: the first that is not empty counts. `roles` maps the words of the
      engine to ours; other words are no role.
    - `markers`: a name and the version since which it is there, for pages whose version nobody tells.
    - `model_ignores_case`: some series of it show the model's name in lower case.
    - `leaf_labels`, `leaf_names`: a label, or how a name in the plain spelling begins, that only models have which
      compute themselves (`leaves`).
    - `bad_request`: what an answer of 400 means.
    """

    kind: str
    signals: tuple[Signal, ...]
    required: tuple[str, ...]
    model_labels: tuple[str, ...] = ("model_name", "model")
    index_labels: tuple[str, ...] = ()
    role_labels: tuple[str, ...] = ()
    roles: Mapping[str, Role] = field(default_factory=dict)
    dedupe: tuple[Dedupe, ...] = ()
    markers: tuple[tuple[str, str], ...] = ()
    version_endpoints: tuple[VersionEndpoint, ...] = ()
    model_ignores_case: bool = False
    leaf_labels: tuple[str, ...] = ()
    leaf_names: tuple[str, ...] = ()
    bad_request: str = ""

    @property
    def allowed_labels(self) -> frozenset[str]:
        """The labels whose values may leave the collector; any other (keys, users, workers) never does."""
        taken = {*self.model_labels, *self.index_labels, *self.role_labels}
        for signal in self.signals:
            for source in signal.sources:
                for part in source.parts():
                    taken |= {label for label in (part.label, part.by, *part.more_labels) if label}
        return frozenset(taken)


def plain_name(name: str) -> str:
    """A series name in the one spelling in which names are compared."""
    return name.replace(":", "_").removeprefix("ray_")


def parsed_version(text: str | None) -> Version | None:
    """The numbers at the start of a version (`v0.11.2.dev3+cpu` is 0.11.2); None where there are none."""
    found = _NUMBERS.match(text or "")
    return tuple(int(number) for number in found[1].split(".")) if found else None


def _numbers(text: str) -> Version:
    """A version that a mapping names; ValueError if it is none, which is a bug in the mapping."""
    if (version := parsed_version(text)) is None:
        raise ValueError(text)
    return version
