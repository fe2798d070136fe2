"""The list of metrics keeps its own promises."""

from collections import Counter

import pytest

from fleet.catalogue import CATALOGUE, by_name


def test_names_are_unique_and_found():
    assert max(Counter(metric.name for metric in CATALOGUE).values()) == 1
    assert len(CATALOGUE) > 70
    for metric in CATALOGUE:
        assert by_name(metric.name) is metric
    with pytest.raises(KeyError, match="gputally_nothing_seconds"):
        by_name("gputally_nothing_seconds")


def test_money_is_never_a_counter_and_always_has_a_currency():
    money = [metric for metric in CATALOGUE if metric.unit == "amount"]
    assert len(money) >= 5
    for metric in money:
        assert metric.kind == "gauge"
        assert "currency" in metric.labels


def test_no_series_per_process_or_request():
    labels = {label for metric in CATALOGUE for label in metric.labels}
    assert not labels & {"pid", "request_id", "pod_uid", "container_id"}


@pytest.mark.parametrize(
    "name",
    ["gputally_device_busy_ratio", "gputally_device_energy_joules_total", "gputally_serving_running_requests",
     "gputally_serving_generation_tokens_total", "gputally_spend_month_to_date_amount"],
)  # fmt: skip
def test_the_names_others_rely_on(name):
    assert by_name(name).help
