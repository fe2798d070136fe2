"""Put gateways into the catalogue's series, for the node's metrics page.

Counters are those of the gateway as they stand; what is not known is no series. How many tenants and models are told
apart is bounded by who reads the gateway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fleet.catalogue_serving import GATEWAY_METRICS
from fleet.errors import one_line
from fleet.measurement import Measurement
from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collectors.serving.gateway import GatewayReading

_METRICS: Final = {metric.name.removeprefix("gputally_gateway_"): metric for metric in GATEWAY_METRICS}
_FIELDS: Final[Mapping[str, str]] = {
    "prompt_tokens_total": "prompt_tokens",
    "prompt_cached_tokens_total": "prompt_tokens_cached",
    "generation_tokens_total": "generation_tokens",
    "received_requests_total": "requests_received",
    "finished_requests_total": "requests_finished",
    "failed_requests_total": "requests_failed",
    "running_requests": "requests_running",
    "waiting_requests": "requests_waiting",
}


def measured_gateway(totals: GatewayReading, pod: str = "") -> Iterator[Measurement]:
    """The series of one gateway, `pod` being the name of the pod that it runs in."""
    for sample in totals.samples:
        labels = (sample.server, sample.gateway, pod, sample.tenant or "", sample.model or "")
        shown = tuple(one_line(text)[:TEXT_LIMIT] for text in labels)
        for name, field in _FIELDS.items():
            if (value := getattr(sample, field)) is not None:
                yield Measurement(_METRICS[name], shown, value)
