"""What visits to model servers in pods say, in rows that replicas of one server on one node do not share.

Replicas have the name of their owner and the same engine indices, so rows of two of them would be taken for parts of
one: time would count twice, and what is the most of one would pass for the most of both. Here the engine index begins
with the pod's name, which no other pod of the namespace has at that moment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from collectors.serving.doubts import doubt_gauges
from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collectors.serving.collector import Visit
    from collectors.serving.samples import EngineSample, ServingReading


def of_pod(visit: Visit, pod: str) -> Visit:
    """The visit with the pod's name before each engine index; alone where the page has none."""
    return visit._replace(totals=_named(visit.totals, pod), step=visit.step and _named(visit.step, pod))


def of_whole_life(visit: Visit, seconds: float) -> Visit:
    """The first visit to a server that began so many seconds ago: all that its counters show is the step.

    Models that only pass requests on are not in it, as in any step: a row without tokens would leave those of the
    server unknown.
    """
    totals = visit.totals
    samples = [
        replace(sample, counters="delta", interval_seconds=seconds)
        for sample in totals.samples
        if (sample.model, sample.engine_index) not in totals.passed_on
    ]
    doubt_gauges(samples)
    return visit._replace(step=replace(totals, samples=tuple(samples)))


def _named(reading: ServingReading, pod: str) -> ServingReading:
    return replace(reading, samples=tuple(_in_pod(sample, pod) for sample in reading.samples))


def _in_pod(sample: EngineSample, pod: str) -> EngineSample:
    index = pod if sample.engine_index is None else f"{pod}/{sample.engine_index}"
    return replace(sample, engine_index=index[:TEXT_LIMIT])
