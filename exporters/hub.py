"""The hub's own metrics, as the catalogue names them, on a page for Prometheus.

Counts are kept here under one lock and turned into families at each scrape, so a node that was forgotten is gone from
the next page. No text from outside becomes a label without a bound on how many there may be.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from fleet.catalogue_pipeline import PIPELINE_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_NODES: Final = 2048
"""Nodes whose clock is shown; beyond, the one heard of longest ago is forgotten."""
COMMIT_BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
LAG_BOUNDS: Final = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)


class HubMetrics:
    """What the hub counts; every method may be called from any thread."""

    def __init__(self) -> None:
        """Start at zero, on a registry of its own."""
        self._lock = threading.Lock()
        self._received = 0
        self._acked: Counter[str] = Counter(stored=0, known=0)
        self._refused: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()
        self._waiting_rows = 0
        self._commit = _Histogram(COMMIT_BOUNDS)
        self._lag = _Histogram(LAG_BOUNDS)
        self._skew_seconds: OrderedDict[str, float] = OrderedDict()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def received(self) -> None:
        """One batch arrived."""
        with self._lock:
            self._received += 1

    def acked(self, outcome: str, count: int = 1) -> None:
        """Batches were acknowledged: outcome is stored or known."""
        with self._lock:
            self._acked[outcome] += count

    def refused(self, reason: str) -> None:
        """One batch was not taken; `reason` is a word of the hub's own."""
        with self._lock:
            self._refused[reason] += 1

    def stored(self, table: str, rows: int) -> None:
        """Rows were written to a table."""
        with self._lock:
            self._rows[table] += rows

    def waiting(self, rows: int) -> None:
        """How many rows were received and are not committed."""
        with self._lock:
            self._waiting_rows = rows

    def committed(self, seconds: float) -> None:
        """A group commit took so long."""
        with self._lock:
            self._commit.observe(seconds)

    def lag(self, seconds: float) -> None:
        """So long after the end of its newest window a batch was committed."""
        with self._lock:
            self._lag.observe(seconds)

    def clock_skew(self, node: str, seconds: float) -> None:
        """A node's clock minus the hub's, at its last batch."""
        with self._lock:
            self._skew_seconds[node] = seconds
            self._skew_seconds.move_to_end(node)
            if len(self._skew_seconds) > MAX_NODES:
                self._skew_seconds.popitem(last=False)

    def page(self) -> bytes:
        """The page in Prometheus' text format."""
        page: bytes = generate_latest(self._registry)
        return page

    def collect(self) -> Iterator[Metric]:
        """Every family, for `prometheus_client`."""
        with self._lock:
            families = [
                _counter("gputally_hub_received_batches_total", [((), self._received)]),
                _counter("gputally_hub_acked_batches_total", _by_label(self._acked)),
                _counter("gputally_hub_refused_batches_total", _by_label(self._refused)),
                _counter("gputally_hub_stored_rows_total", _by_label(self._rows)),
                _gauge("gputally_hub_waiting_rows", [((), self._waiting_rows)]),
                self._commit.family("gputally_hub_commit_duration_seconds"),
                self._lag.family("gputally_hub_ingest_lag_seconds"),
                _gauge("gputally_hub_clock_skew_seconds", _by_label(self._skew_seconds)),
            ]
        yield from families


class _Histogram:
    """Counts by upper bound, and the sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def family(self, name: str) -> Metric:
        total = 0
        buckets = []
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        return HistogramMetricFamily(name, _help(name)[0], buckets=buckets, sum_value=self._sum)


def _by_label(values: Counter[str] | OrderedDict[str, float]) -> list[tuple[tuple[str, ...], float]]:
    return [((label,), float(value)) for label, value in values.items()]


def _counter(name: str, samples: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    text, labels = _help(name)
    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _gauge(name: str, samples: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    text, labels = _help(name)
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _help(name: str) -> tuple[str, tuple[str, ...]]:
    """Help text and labels, from the catalogue: a metric that is not in it cannot be exposed."""
    metric = next(metric for metric in PIPELINE_METRICS if metric.name == name)
    return metric.help, metric.labels
