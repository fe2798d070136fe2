"""One device's window while it fills: whole numbers that only add up, so order and cuts do not matter.

Integrals are kept in milliseconds (ratios), MiB x ms (memory) and mW x ms (power), as `DeviceWindowRow` says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from fleet.telemetry import QUALITY_BITS, STATES, DeviceWindowRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collectors.samples import DeviceSample

COUNTED: Final = (
    "throttle_power_nanoseconds", "throttle_thermal_nanoseconds", "ecc_corrected_volatile_errors",
    "ecc_uncorrected_volatile_errors", "ecc_corrected_aggregate_errors", "ecc_uncorrected_aggregate_errors",
    "pcie_tx_bytes", "pcie_rx_bytes", "pcie_replay_events", "nvlink_tx_bytes", "nvlink_rx_bytes",
)  # fmt: skip
"""The counters of a sample that a window adds up, beside energy."""
counts_of: Final = attrgetter(*COUNTED)

# What stands in a window as the largest that was seen; of two truth values that is True.
_PEAKS: Final = {
    "sm_megahertz": "sm_clock_max_megahertz",
    "temperature_celsius": "temperature_max_celsius",
    "memory_temperature_celsius": "memory_temperature_max_celsius",
    "remapped_corrected_rows": "remapped_corrected_rows",
    "remapped_uncorrected_rows": "remapped_uncorrected_rows",
    "remap_is_pending": "remap_is_pending",
    "remap_has_failed": "remap_has_failed",
    "retired_pages": "retired_pages",
}
_peaks_of: Final = attrgetter(*_PEAKS)
_levels_of: Final = attrgetter(
    "busy_ratio", "sm_ratio", "occupancy_ratio", "tensor_ratio", "dram_ratio", "memory_used_bytes", "power_watts"
)
_RATIOS: Final = 5
_MEMORY: Final = 5
_POWER: Final = 6
_LARGEST: Final = 2**63 - 1
_IMPOSSIBLE_WATTS: Final = 1_000_000
_STATE_RANK: Final = {state: rank for rank, state in enumerate(STATES)}
_NOT_SEEN: Final = -1
_UNOBSERVED: Final = STATES.index("unobserved")


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a sample in whole numbers; None is unknown, `refused` how many could not be believed."""

    amounts: list[int | None]
    """What an interval adds at these levels: ms of each ratio, MiB x ms, mW x ms."""
    memory_mebibytes: int | None
    power_milliwatts: int | None
    refused: int


def levels(sample: DeviceSample, interval_ms: int) -> Levels:
    """What a sample's levels add up to over an interval. A ratio from whole per cent is exact."""
    values: Sequence[Any] = _levels_of(sample)
    amounts: list[int | None] = [None, None, None, None, None, None, None]
    refused = 0
    for index in range(_RATIOS):
        ratio = values[index]
        if ratio is None:
            continue
        # Written so that NaN is refused too.
        if 0 <= ratio <= 1:
            amounts[index] = round(ratio * interval_ms)
        else:
            refused += 1
    memory, power = values[_MEMORY], values[_POWER]
    mebibytes = milliwatts = None
    if memory is not None:
        if 0 <= memory <= _LARGEST:
            mebibytes = memory >> 20
            amounts[_MEMORY] = mebibytes * interval_ms
        else:
            refused += 1
    # A part that repeats its board's power would count it again.
    if power is not None and sample.parent_uuid is None:
        if 0 <= power < _IMPOSSIBLE_WATTS:
            milliwatts = round(power * 1000)
            amounts[_POWER] = milliwatts * interval_ms
        else:
            refused += 1
    return Levels(amounts, mebibytes, milliwatts, refused)


def split(whole: Levels, since_ms: int, until_ms: int, interval_ms: int) -> Levels:
    """The part of an interval's levels that lies in [since, until) of it; parts add up exactly."""
    amounts = [
        None if amount is None else amount * until_ms // interval_ms - amount * since_ms // interval_ms
        for amount in whole.amounts
    ]
    return Levels(amounts, whole.memory_mebibytes, whole.power_milliwatts, whole.refused)


@dataclass(slots=True)
class OpenWindow:
    """What is known of a window so far; `state` is the rank of the worst that was seen."""

    start_second: int
    window_ms: int = 0
    observed_ms: int = 0
    state: int = _NOT_SEEN
    busy_observed_ms: int = 0
    profile_observed_ms: int = 0
    memory_observed_ms: int = 0
    power_observed_ms: int = 0
    profile_known: list[bool] | None = None
    integrals: list[int | None] = field(default_factory=lambda: [None] * 7)
    peaks: list[int | None] = field(default_factory=lambda: [None] * len(_PEAKS))
    memory_used_max_mebibytes: int | None = None
    power_max_milliwatts: int | None = None
    temperature_margin_min_celsius: int | None = None
    throttle_bits: int | None = None
    counters: list[int | None] = field(default_factory=lambda: [None] * len(COUNTED))
    energy_millijoules: int | None = None
    quality_bits: int = 0

    def see(self, state: str, flags: Iterable[str]) -> None:
        """Note the state of the device, and doubt."""
        rank = _STATE_RANK[state]
        if rank > self.state:
            self.state = rank
        for flag in flags:
            self.quality_bits |= QUALITY_BITS[flag]

    def observe(self, sample: DeviceSample, known: Levels, observed_ms: int) -> None:
        """Add an interval in which the device was watched, at the levels of the sample."""
        self.observed_ms += observed_ms
        if known.refused:
            self.quality_bits |= QUALITY_BITS["rejected"]
        self._integrate(known, observed_ms)
        peaks = self.peaks
        for index, value in enumerate(_peaks_of(sample)):
            if value is not None:
                highest = peaks[index]
                if highest is None or value > highest:
                    peaks[index] = value
        margin, lowest = sample.temperature_margin_celsius, self.temperature_margin_min_celsius
        if margin is not None and (lowest is None or margin < lowest):
            self.temperature_margin_min_celsius = margin
        if sample.throttle_bits is not None:
            self.throttle_bits = (self.throttle_bits or 0) | sample.throttle_bits

    def _integrate(self, known: Levels, observed_ms: int) -> None:
        amounts, integrals = known.amounts, self.integrals
        for index, amount in enumerate(amounts):
            if amount is not None:
                integrals[index] = amount + (integrals[index] or 0)
        if amounts[0] is not None:
            self.busy_observed_ms += observed_ms
        profile = [amount is not None for amount in amounts[1:_RATIOS]]
        if any(profile):
            self.profile_observed_ms += observed_ms
            # One time stands for all four, so a value that is there only at times makes its ratio too small.
            if self.profile_known is not None and self.profile_known != profile:
                self.quality_bits |= QUALITY_BITS["partial"]
            self.profile_known = profile
        if known.memory_mebibytes is not None:
            self.memory_observed_ms += observed_ms
            if known.memory_mebibytes > (self.memory_used_max_mebibytes or -1):
                self.memory_used_max_mebibytes = known.memory_mebibytes
        if known.power_milliwatts is not None:
            self.power_observed_ms += observed_ms
            if known.power_milliwatts > (self.power_max_milliwatts or -1):
                self.power_max_milliwatts = known.power_milliwatts

    def count(self, index: int, added: int) -> None:
        """Add to a counter, by its place in COUNTED. 0 is knowledge: nothing was added."""
        self.counters[index] = added + (self.counters[index] or 0)

    def meter(self, millijoules: int) -> None:
        """Add energy."""
        self.energy_millijoules = millijoules + (self.energy_millijoules or 0)

    @property
    def says_nothing(self) -> bool:
        """Whether nobody looked and nothing was added."""
        is_counted = any(added is not None for added in self.counters) or self.energy_millijoules is not None
        return self.state == _NOT_SEEN and not self.quality_bits and not is_counted

    def row(self, device: str, driver_epoch: int) -> DeviceWindowRow:
        """The window as it goes to the lake."""
        busy, sm, occupancy, tensor, dram, memory, power = self.integrals
        counted = dict(zip(COUNTED, self.counters, strict=True))
        # The two ways of counting errors overlap and are not added: since driver load, else since the device was made.
        for name in ("ecc_corrected", "ecc_uncorrected"):
            volatile, aggregate = (counted.pop(f"{name}_{scope}_errors") for scope in ("volatile", "aggregate"))
            counted[f"{name}_errors"] = aggregate if volatile is None else volatile
        offered = dict(zip(_PEAKS.values(), self.peaks, strict=True)) | counted
        offered |= {
            "sm_ms": sm, "occupancy_ms": occupancy, "tensor_ms": tensor, "dram_ms": dram, "busy_ms": busy,
            "memory_used_mebibyte_ms": memory, "memory_used_max_mebibytes": self.memory_used_max_mebibytes,
            "power_microjoules": power, "power_max_milliwatts": self.power_max_milliwatts,
            "energy_millijoules": self.energy_millijoules, "throttle_bits": self.throttle_bits,
            "temperature_margin_min_celsius": self.temperature_margin_min_celsius,
        }  # fmt: skip
        # A column holds 64 bits; one number beyond that must not cost the batch.
        values: dict[str, Any] = {n: v for n, v in offered.items() if v is not None and -_LARGEST <= v <= _LARGEST}
        is_cut = len(values) < sum(value is not None for value in offered.values())
        return DeviceWindowRow(
            device=device,
            window_start_second=self.start_second,
            window_ms=self.window_ms,
            observed_ms=self.observed_ms,
            state=STATES[_UNOBSERVED if self.state == _NOT_SEEN else self.state],
            busy_observed_ms=self.busy_observed_ms,
            profile_observed_ms=self.profile_observed_ms,
            memory_observed_ms=self.memory_observed_ms,
            power_observed_ms=self.power_observed_ms,
            quality_bits=self.quality_bits | (QUALITY_BITS["rejected"] if is_cut else 0),
            driver_epoch=driver_epoch,
            **values,
        )
