"""One value of one metric of the catalogue, as collectors hand it to exporters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.metric import Metric


@dataclass(frozen=True, slots=True)
class Measurement:
    """A series and its value; `labels` are the values of the metric's labels, in their order. Info metrics are 1."""

    metric: Metric
    labels: tuple[str, ...]
    value: float

    def __post_init__(self) -> None:
        """ValueError when labels are missing or too many."""
        if len(self.labels) != len(self.metric.labels):
            raise ValueError(f"{self.metric.name} takes {len(self.metric.labels)} labels, not {len(self.labels)}")
