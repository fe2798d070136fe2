"""The one list of metrics that gputally exposes, from which all others are checked.

Exporters, alert rules, dashboards and documentation may only use names that stand here. The
list is data: nothing in it knows how a value is measured or served.
"""

from fleet.catalogue_cost import COST_METRICS
from fleet.catalogue_device import DEVICE_METRICS
from fleet.catalogue_pipeline import PIPELINE_METRICS
from fleet.catalogue_serving import GATEWAY_METRICS, SERVING_METRICS
from fleet.errors import quoted
from fleet.metric import Metric

CATALOGUE: tuple[Metric, ...] = (
    *DEVICE_METRICS,
    *SERVING_METRICS,
    *GATEWAY_METRICS,
    *COST_METRICS,
    *PIPELINE_METRICS,
)
"""Every metric, grouped by what it describes."""


_BY_NAME = {metric.name: metric for metric in CATALOGUE}


def by_name(name: str) -> Metric:
    """The metric of that name; KeyError if the catalogue has none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise KeyError(f"no metric is named {quoted(name)}") from None
