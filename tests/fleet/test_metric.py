"""The grammar of metric names, each rule broken once."""

import pytest

from fleet.metric import Metric


def test_a_metric_that_obeys_the_grammar():
    metric = Metric("gputally_device_energy_joules_total", "counter", "joules", ("uuid",), "Energy used.")
    assert metric.unit == "joules"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"name": "device_power_watts"}, "gputally_<noun>_<unit>"),
        ({"name": "gputally_watts"}, "gputally_<noun>_<unit>"),
        ({"name": "gputally_Device_watts"}, "gputally_<noun>_<unit>"),
        ({"name": "gputally_power_watts_sum"}, "keeps this ending"),
        ({"name": "gputally_power_watts_total"}, "a gauge in watts ends in _watts"),
        ({"name": "gputally_power_milliwatts", "unit": "milliwatts"}, "is not a unit"),
        ({"name": "gputally_power_joules"}, "a gauge in watts ends in _watts"),
        ({"kind": "counter"}, "ends in _watts_total"),
        ({"kind": "info"}, "no unit and ends in _info"),
        ({"name": "gputally_power_info", "kind": "info"}, "no unit and ends in _info"),
        ({"labels": ("le",)}, "cannot be a label"),
        ({"labels": ("__name__",)}, "cannot be a label"),
        ({"labels": ("a", "a")}, "appears twice"),
        ({"labels": ("currency",)}, "carry the label currency"),
        ({"name": "gputally_spend_amount", "unit": "amount"}, "carry the label currency"),
        ({"help": "No stop"}, "full stop"),
        ({"help": "Two\nlines."}, "full stop"),
    ],
)
def test_a_metric_that_breaks_it(changed, reason):
    good = {
        "name": "gputally_power_watts",
        "kind": "gauge",
        "unit": "watts",
        "labels": ("a",),
        "help": "Power.",
    }
    assert Metric(**good).name == "gputally_power_watts"
    with pytest.raises(ValueError, match=reason):
        Metric(**good | changed)
