"""What node agents send to the lake: the rows of each table, once for the agent, the wire and the lake.

Every column is a whole number, a text or a truth value, so sums are exact and independent of their order; ratios are
formed by whoever reads. None is unknown, never 0. Times are whole seconds since 1970 (UTC), intervals half-open.

A device is named by `device`, its key over time: its UUID, or for an instance that has no UUID of its own, the
parent's UUID and the slot (`GPU-.../gi7`). Which node a row is from stands on the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WINDOW_SECONDS: Final = 60
"""Windows start at whole multiples of this, so none crosses an hour, a day or a month."""
WHOLE_DEVICE_MILLIONTHS: Final = 1_000_000
TEXT_LIMIT: Final = 256
"""Longer texts are cut before they are sent, and refused by the hub."""
LIST_TEXT_LIMIT: Final = 4096
"""The limit of texts that list numbers, which are not cut: whoever makes them leaves out what would not fit."""
_LISTS: Final = frozenset({"bounds", "counts"})

STATES: Final = ("ok", "degraded", "unobserved", "needs_reset", "lost")
"""From good to bad: a window carries the worst that was seen in it."""
QUALITY_BITS: Final[Mapping[str, int]] = MappingProxyType(
    {"estimated": 1, "partial": 2, "profiling_stuck": 4, "rejected": 8, "reset": 16, "stale": 32}
)
"""Doubt about a window, one bit each; the words are those of a sample's flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """What a device is, from `seen_from_second` until the next such row. Table `seen_device`."""

    device: str
    seen_from_second: int
    kind: str
    parent: str | None = None
    slot: str | None = None
    vendor: str | None = None
    model: str | None = None
    architecture: str | None = None
    driver: str | None = None
    pci_bus_id: str | None = None
    serial: str | None = None
    profile: str | None = None
    memory_mebibytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWindowRow:
    """One device over one window, or a part of one: rows of the same window add up. Table `device_window`.

    `window_ms` is the time that the row accounts for: less than a window where a device comes or goes or its agent
    stops, 0 where only a counter tells later what it added. `observed_ms` is how long the device was watched. Each
    group of integrals has its own `_observed_ms`: how much of the window its values are known for; an integral of
    which nothing is known is None. So a ratio is `busy_ms / busy_observed_ms`. Counters are what was added.
    """

    device: str
    window_start_second: int
    window_ms: int
    observed_ms: int
    state: str
    busy_observed_ms: int = 0
    busy_ms: int | None = None
    profile_observed_ms: int = 0
    sm_ms: int | None = None
    occupancy_ms: int | None = None
    tensor_ms: int | None = None
    dram_ms: int | None = None
    memory_observed_ms: int = 0
    memory_used_mebibyte_ms: int | None = None
    memory_used_max_mebibytes: int | None = None
    power_observed_ms: int = 0
    power_microjoules: int | None = None
    """The integral of power over time: milliwatts x milliseconds."""
    power_max_milliwatts: int | None = None
    energy_millijoules: int | None = None
    """What the device's own meter added; from power, and flagged `estimated`, where it has none."""
    sm_clock_max_megahertz: int | None = None
    temperature_max_celsius: int | None = None
    memory_temperature_max_celsius: int | None = None
    temperature_margin_min_celsius: int | None = None
    throttle_bits: int | None = None
    """Every reason that held the clocks down at some moment of the window."""
    throttle_power_nanoseconds: int | None = None
    throttle_thermal_nanoseconds: int | None = None
    ecc_corrected_errors: int | None = None
    ecc_uncorrected_errors: int | None = None
    remapped_corrected_rows: int | None = None
    remapped_uncorrected_rows: int | None = None
    remap_is_pending: bool | None = None
    remap_has_failed: bool | None = None
    retired_pages: int | None = None
    pcie_tx_bytes: int | None = None
    pcie_rx_bytes: int | None = None
    pcie_replay_events: int | None = None
    nvlink_tx_bytes: int | None = None
    nvlink_rx_bytes: int | None = None
    quality_bits: int = 0
    driver_epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingRow:
    """Who held how much of a device in an interval, cut at window boundaries. Table `held_window`.

    `gpu_millionths` counts physical devices: 1,000,000 is a whole one; all holders of one never add up to more.
    `confidence` is `exact`, `split` (a rule divided what is shared) or `assumed` (bridged or guessed). `conflict` says
    why others claimed the same at the same time.
    """

    device: str
    from_second: int
    to_second: int
    gpu_millionths: int
    owner_kind: str
    source: str
    confidence: str
    namespace: str | None = None
    workload: str | None = None
    pod: str | None = None
    pod_uid: str | None = None
    container: str | None = None
    job_id: str | None = None
    user_name: str | None = None
    conflict: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEventRow:
    """Something that happened to a device. Table `device_event`.

    `event_id` is made from what the source says of the event, so that the same one, read again, is the same row.
    `device` is None where the source names only an address that is not known.
    """

    event_id: str
    event_microsecond: int
    source: str
    code_space: str
    code: int
    severity: str
    device: str | None = None
    pci_bus_id: str | None = None
    fault_class: str | None = None
    text: str | None = None
    pid: int | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWindowRow:
    """One model and engine index of a model server over one window, or a part of one. Table `engine_window`.

    Rows of the same window add up, but for maxima and what stands as it is (capacity, load time). `window_ms` and
    `observed_ms` are as in `DeviceWindowRow`; a row of `window_ms` 0 only brings counters. Integrals are of what was
    running or waiting, in request x ms; each group has its own `_observed_ms`. Counters are what was added, by the
    engine's own count: `generation_tokens` of requests that were given up too, the finished ones beside them.
    A model or index of None tells of all of them at once; no value stands in two rows.
    """

    server: str
    engine: str
    window_start_second: int
    window_ms: int
    observed_ms: int
    scrape_count: int
    engine_version: str | None = None
    model: str | None = None
    engine_index: str | None = None
    role: str | None = None
    running_observed_ms: int = 0
    running_request_ms: int | None = None
    running_max_requests: int | None = None
    waiting_observed_ms: int = 0
    waiting_request_ms: int | None = None
    waiting_max_requests: int | None = None
    kv_observed_ms: int = 0
    kv_used_ms: int | None = None
    """The integral of the share of the cache in use."""
    kv_used_max_millionths: int | None = None
    kv_capacity_tokens: int | None = None
    prompt_tokens: int | None = None
    prompt_cached_tokens: int | None = None
    prompt_computed_tokens: int | None = None
    generation_tokens: int | None = None
    generation_is_at_finish: bool | None = None
    """Tokens count when their request ends: a long one looks idle until then."""
    finished_prompt_tokens: int | None = None
    finished_generation_tokens: int | None = None
    prefix_query_tokens: int | None = None
    prefix_hit_tokens: int | None = None
    finished_requests: int | None = None
    failed_requests: int | None = None
    aborted_requests: int | None = None
    preemption_events: int | None = None
    speculation_draft_tokens: int | None = None
    speculation_accepted_tokens: int | None = None
    busy_ms: int | None = None
    """Time computed, of all phases and ranks: it may be more than the window."""
    idle_ms: int | None = None
    asleep_ms: int | None = None
    """How long the engine held its devices and could not serve."""
    model_load_ms: int | None = None
    """How long the last load took, as the engine shows it: the same in each window until it loads again."""
    counter_resets: int = 0
    """Visits that found counters begun again."""
    quality_bits: int = 0
    received_requests: int | None = None
    """Requests that arrived, however they ended: attempts, not work."""
    speculation_draft_events: int | None = None
    """Drafts that were proposed: 1 + accepted tokens / drafts is the mean length of what a step yields."""
    prefill_busy_ms: int | None = None
    decode_busy_ms: int | None = None
    """Time that devices computed in either phase, where the engine measures it; `busy_ms` may hold other phases too."""
    estimated_gigaflops: int | None = None
    """Floating point operations per device, in thousand millions, as the engine estimates them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineHistogramRow:
    """What a model server observed in a window, by size. Table `engine_histogram`.

    `bounds` is the layout: upper bounds in the signal's unit, ascending, separated by commas. `counts` are per bucket,
    one more than the bounds. Both are empty where the layout is not known; then only sum and count say something. Rows
    add up where they have the same bounds, and never otherwise. Observations stand in the window in which they were
    read; without any there is no row.
    """

    server: str
    engine: str
    window_start_second: int
    signal: str
    bounds: str
    counts: str
    sum_microunits: int
    count: int
    engine_version: str | None = None
    model: str | None = None
    engine_index: str | None = None
    role: str | None = None


Row: TypeAlias = DeviceRow | DeviceWindowRow | HoldingRow | DeviceEventRow | EngineWindowRow | EngineHistogramRow

TABLES: Final[Mapping[str, type[Row]]] = MappingProxyType(
    {
        "seen_device": DeviceRow,
        "device_window": DeviceWindowRow,
        "held_window": HoldingRow,
        "device_event": DeviceEventRow,
        "engine_window": EngineWindowRow,
        "engine_histogram": EngineHistogramRow,
    }
)
"""The tables of a batch by name; the lake's are named the same."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table on the wire."""

    name: str
    kind: type[int] | type[str] | type[bool]
    is_nullable: bool

    @property
    def text_limit(self) -> int:
        """How many characters a text may have."""
        return LIST_TEXT_LIMIT if self.name in _LISTS else TEXT_LIMIT


def columns(table: str) -> tuple[Column, ...]:
    """The columns of a table in their order; KeyError for a table that is none."""
    row = TABLES[table]
    hints = get_type_hints(row)
    made = []
    for field in fields(row):
        kinds = [kind for kind in (int, str, bool) if hints[field.name] in (kind, kind | None)]
        made.append(Column(field.name, kinds[0], hints[field.name] == kinds[0] | None))
    return tuple(made)


def quality_bits(flags: Iterable[str]) -> int:
    """The bits of some flags; KeyError for a word that is none."""
    bits = 0
    for flag in flags:
        bits |= QUALITY_BITS[flag]
    return bits
