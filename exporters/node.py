"""The node's metrics page: measurements as families of the catalogue, built fresh at each scrape.

An own registry holds one collector, which asks for the measurements; what is not measured any more is gone from the
next page. The page is in Prometheus' text format 0.0.4: the client library writes it in two thirds of the CPU of
OpenMetrics, which would add nothing to series without exemplars.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from fleet.catalogue import CATALOGUE
from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Set

    from fleet.measurement import Buckets, Measurement

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
SERIES_LIMIT: Final = 50_000
_BY_NAME: Final = {metric.name: metric for metric in CATALOGUE}


class NodePage:
    """Renders the page, for one thread at a time.

    A measurement that breaks the rules of the catalogue or repeats a series is a defect: `strict` raises ValueError,
    otherwise it is left out and counted in `rejected`, because a page without it is better than none.
    """

    def __init__(self, measure: Callable[[], Iterable[Measurement]], *, strict: bool = False) -> None:
        self._families = _Families(measure, strict=strict)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self._families)
        self._lock = threading.Lock()
        self._page = b""
        self._begun_at = -math.inf

    @property
    def rejected(self) -> Mapping[str, int]:
        """How many measurements were left out since the start, by reason."""
        return dict(self._families.rejected)

    def render(self) -> bytes:
        """The page now. Those who ask while it is being made share the next one, so that many cost as much as two."""
        asked_at = time.monotonic()
        with self._lock:
            if self._begun_at < asked_at:
                begun_at = time.monotonic()
                self._page = generate_latest(self._registry)
                self._begun_at = begun_at
            return self._page


class _Families(Collector):
    """The collector in the registry."""

    def __init__(self, measure: Callable[[], Iterable[Measurement]], *, strict: bool) -> None:
        self._measure = measure
        self._strict = strict
        self.rejected: Counter[str] = Counter()

    def collect(self) -> Iterable[Family]:
        """Families in the order of the catalogue."""
        families: dict[str, Family] = {}
        seen: set[tuple[str, tuple[str, ...]]] = set()
        room = SERIES_LIMIT
        for measured in self._measure():
            metric, labels = measured.metric, measured.labels
            name, series = metric.name, (metric.name, labels)
            size = len(measured.buckets.counts) + 2 if measured.buckets else 1
            reason = self._reason_against(measured, series, seen) or ("too_many_series" if size > room else None)
            if reason:
                self._reject(reason, name)
                continue
            seen.add(series)
            room -= size
            family = families.get(name)
            if family is None:
                families[name] = family = _family(name)
            shown = dict(zip(metric.labels, map(_shown, labels), strict=True))
            if measured.buckets:
                family.samples.extend(_histogram(name, shown, measured.buckets))
            else:
                family.samples.append(Sample(name, shown, measured.value))
        return [families[name] for name in _BY_NAME if name in families]

    @staticmethod
    def _reason_against(
        measured: Measurement, series: tuple[str, tuple[str, ...]], seen: Set[tuple[str, tuple[str, ...]]]
    ) -> str | None:
        metric, value = measured.metric, measured.value
        known = _BY_NAME.get(metric.name)
        if (known is not metric and known != metric) or (metric.kind == "histogram") != bool(measured.buckets):
            return "unknown_metric"
        if series in seen:
            return "duplicate_series"
        is_possible = value == 1 if metric.kind == "info" else value >= 0 or metric.kind == "gauge"
        if not is_possible or not math.isfinite(value) or (measured.buckets and not _is_possible(measured.buckets)):
            return "impossible_value"
        return None

    def _reject(self, reason: str, name: str) -> None:
        if self._strict:
            raise ValueError(f"{name}: {reason}")
        self.rejected[reason] += 1


def _family(name: str) -> Family:
    """The library appends `_total` and `_info` itself; an info metric is a gauge in the text format."""
    metric = _BY_NAME[name]
    return Family(name.removesuffix("_total").removesuffix("_info"), metric.help, metric.kind)


def _is_possible(buckets: Buckets) -> bool:
    is_ordered = all(low < high for low, high in pairwise(buckets.bounds))
    return is_ordered and min(buckets.counts) >= 0 and all(map(math.isfinite, (*buckets.bounds, buckets.sum)))


def _histogram(name: str, labels: Mapping[str, str], buckets: Buckets) -> Iterator[Sample]:
    """A histogram's series: on the page a bucket counts all that lies below its bound."""
    bounds = (*buckets.bounds, math.inf)
    for bound, running in zip(bounds, accumulate(buckets.counts), strict=True):
        yield Sample(f"{name}_bucket", {**labels, "le": "+Inf" if bound == math.inf else repr(float(bound))}, running)
    yield Sample(f"{name}_sum", dict(labels), buckets.sum)
    yield Sample(f"{name}_count", dict(labels), buckets.count)


def _shown(label: str) -> str:
    """A label value from anywhere: bounded, and text that UTF-8 can carry."""
    cut = label[:TEXT_LIMIT]
    return cut if cut.isascii() else cut.encode(errors="replace").decode()
