"""One value of one metric of the catalogue, as collectors hand it to exporters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.metric import Metric


@dataclass(frozen=True, slots=True)
class Buckets:
    """Observations by size: counts per bucket, not running totals, one more than the ascending bounds for the rest."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    def __post_init__(self) -> None:
        """ValueError when bounds and counts do not belong together."""
        if len(self.counts) != len(self.bounds) + 1:
            raise ValueError(f"{len(self.bounds)} bounds make {len(self.bounds) + 1} buckets, not {len(self.counts)}")

    @property
    def count(self) -> int:
        """How many observations there are."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A series and its value; `labels` are the values of the metric's labels, in their order. Info metrics are 1.

    A histogram has `buckets`, and the number of its observations as its value.
    """

    metric: Metric
    labels: tuple[str, ...]
    value: float
    buckets: Buckets | None = None

    def __post_init__(self) -> None:
        """ValueError when labels are missing or too many."""
        if len(self.labels) != len(self.metric.labels):
            raise ValueError(f"{self.metric.name} takes {len(self.metric.labels)} labels, not {len(self.labels)}")


def histogram(metric: Metric, labels: tuple[str, ...], buckets: Buckets) -> Measurement:
    """A histogram as it stands. ValueError as of a Measurement."""
    return Measurement(metric, labels, buckets.count, buckets)
