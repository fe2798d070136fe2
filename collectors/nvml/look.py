"""One look at a device through NVML: takes the values out of readings, and keeps what was in the way of the others."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from collectors.nvml.values import Reason

if TYPE_CHECKING:
    from collectors.nvml.values import Reading, T

INVALID_ARGUMENT: Final = 2
CORRUPTED_INFOROM: Final = 14
TRANSIENT: Final = frozenset({19, 23, 27, 999})
"""Codes of a driver in trouble that may pass: no data, in use, not ready, unknown."""
COUNTED: Final = {
    Reason.OUT_OF_RANGE: "range",
    Reason.SENTINEL: "blank",
    Reason.NO_PERMISSION: "no_permission",
    Reason.TIMEOUT: "timeout",
    Reason.UNKNOWN: "driver_error",
}
"""What is counted as refused; what a device does not have is no refusal."""


class Look:
    """What one visit found in the way, of a device or of an instance."""

    __slots__ = ("is_corrupted", "is_gone", "is_transient", "is_unbelievable", "refused")

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.is_unbelievable = False
        """A value was impossible: the row is flagged `rejected`."""
        self.is_transient = False
        self.is_corrupted = False
        """The InfoROM is corrupted (code 14); the rest can be read."""
        self.is_gone = False
        """The driver does not know the handle any more: enumerate again."""

    def value(self, reading: Reading[T]) -> T | None:
        """The value, or None with its reason kept."""
        if reading.reason is not None:
            self._absent(reading.reason, reading.code)
        return reading.value

    def _absent(self, reason: Reason, code: int | None) -> None:
        if code == INVALID_ARGUMENT:
            self.is_gone = True
        elif code == CORRUPTED_INFOROM:
            self.is_corrupted = True
        elif name := COUNTED.get(reason):
            self.refused[name] += 1
            self.is_unbelievable = self.is_unbelievable or reason is Reason.OUT_OF_RANGE
            self.is_transient = self.is_transient or code in TRANSIENT
