"""The node's page: what the catalogue says, what Prometheus' own checker accepts, and nothing else."""

from __future__ import annotations

import math
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from exporters.node import NodePage
from fleet.catalogue import CATALOGUE, by_name
from fleet.measurement import Buckets, Measurement, histogram
from fleet.metric import Metric
from tests.exporters.hub import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EXPORTED = CATALOGUE
SEEN = Buckets((0.25, 1.0), (1, 0, 2), 3.5)
LATENCY = by_name("gputally_serving_decode_time_seconds")
POWER = by_name("gputally_device_power_watts")
ENERGY = by_name("gputally_device_energy_joules_total")
STATE = by_name("gputally_device_state_info")


def one_of_each() -> Iterator[Measurement]:
    """Two series of every metric that the page can show, in an order that is not the catalogue's."""
    for metric in reversed(EXPORTED):
        for series in ("a", "b"):
            labels = tuple(f"{label}-{series}" for label in metric.labels)
            if labels or series == "a":
                if metric.kind == "histogram":
                    yield histogram(metric, labels, SEEN)
                else:
                    yield Measurement(metric, labels, 1 if metric.kind == "info" else 2.5)


def page(*measured: Measurement) -> str:
    return NodePage(lambda: measured, strict=True).render().decode()


def test_the_page_is_this(golden: Callable[[str, str], None]) -> None:
    """One metric of each kind, in the order of the catalogue whatever the order of measuring."""
    golden(
        "agent/page.prom",
        page(
            Measurement(by_name("gputally_push_acked_batches_total"), ("node-1",), 12),
            Measurement(ENERGY, ("node-1", "GPU-b"), 1_234_567.125),
            Measurement(STATE, ("node-1", "GPU-b", "ok"), 1),
            Measurement(POWER, ("node-1", "GPU-b"), 252.636),
            Measurement(POWER, ("node-1", "GPU-a/gi7"), 0),
            Measurement(
                by_name("gputally_device_held_ratio"), ("node-1", "GPU-b", "pod", "a\\b", 'w"x"', "l\nm", "s"), 0.25
            ),
        ),
    )


def test_the_page_of_every_metric_is_content_for_promtool(promtool_bin: Path) -> None:
    done = subprocess.run(
        [promtool_bin, "check", "metrics"],
        input=NodePage(one_of_each, strict=True).render(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_types_are_those_of_the_catalogue() -> None:
    types = dict(line.split()[2:4] for line in NodePage(one_of_each).render().decode().splitlines() if "# TYPE" in line)
    assert types == {metric.name: "gauge" if metric.kind == "info" else metric.kind for metric in EXPORTED}


def test_what_is_not_measured_any_more_is_gone() -> None:
    measured = [Measurement(POWER, ("n", "GPU-1"), 1.0), Measurement(POWER, ("n", "GPU-2"), 2.0)]
    shown = NodePage(lambda: measured)
    assert b"GPU-1" in shown.render()
    del measured[0]
    assert b"GPU-1" not in shown.render()
    assert b"GPU-2" in shown.render()


@given(st.lists(st.tuples(st.text(), st.text()), unique=True), st.floats(allow_nan=False, allow_infinity=False))
def test_any_text_is_a_label_value_and_no_new_line_of_the_page(labels: list[tuple[str, str]], value: float) -> None:
    text = page(*(Measurement(POWER, pair, value) for pair in labels))
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert [(sample.labels["node"], sample.labels["uuid"]) for sample in samples] == labels
    assert all(sample.value == value for sample in samples)


def test_text_that_is_no_text_or_endless_costs_a_label_and_not_the_page() -> None:
    text = page(Measurement(POWER, ("n", "GPU-\udcff"), 1), Measurement(POWER, ("n", "x" * 100_000), 1))
    assert 'uuid="GPU-?"' in text
    assert len(text) < 1_000


WRONG = {
    "unknown_metric": [Measurement(Metric("gputally_other_watts", "gauge", "watts", (), "Not listed."), (), 1)],
    "duplicate_series": [Measurement(POWER, ("n", "GPU-1"), 1), Measurement(POWER, ("n", "GPU-1"), 2)],
    "nan": [Measurement(POWER, ("n", "GPU-1"), math.nan)],
    "infinite": [Measurement(POWER, ("n", "GPU-1"), math.inf)],
    "negative counter": [Measurement(ENERGY, ("n", "GPU-1"), -1)],
    "info that is not 1": [Measurement(STATE, ("n", "GPU-1", "ok"), 0)],
    "a histogram without buckets": [Measurement(by_name("gputally_hub_commit_duration_seconds"), (), 1)],
    "buckets that are no histogram's": [Measurement(POWER, ("n", "GPU-1"), 3, SEEN)],
    "bounds out of order": [histogram(LATENCY, ("s", "e", "m", "0"), Buckets((1.0, 0.5), (1, 1, 1), 1))],
    "a bucket below 0": [histogram(LATENCY, ("s", "e", "m", "0"), Buckets((0.5,), (3, -1), 1))],
    "a sum that is none": [histogram(LATENCY, ("s", "e", "m", "0"), Buckets((0.5,), (3, 1), math.nan))],
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_measurement_that_breaks_the_rules_is_a_defect(wrong: list[Measurement]) -> None:
    with pytest.raises(ValueError, match=wrong[0].metric.name):
        page(*wrong)
    good = Measurement(POWER, ("n", "GPU-7"), 7)
    shown = NodePage(lambda: [*wrong, good])
    assert b'gputally_device_power_watts{node="n",uuid="GPU-7"} 7.0\n' in shown.render()
    assert sum(shown.rejected.values()) == 1


def test_a_histogram_counts_what_lies_below_each_bound() -> None:
    lines = [line for line in page(histogram(LATENCY, ("s", "e", "m", "0"), SEEN)).splitlines() if line[0] != "#"]
    place = 'server="s"', 'engine="e"', 'model="m"', 'engine_index="0"'
    found = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    labels = ",".join(sorted(place))
    assert {name: value for name, value in found.items() if "_bucket" not in name} == {
        f"{LATENCY.name}_sum{{{labels}}}": 3.5,
        f"{LATENCY.name}_count{{{labels}}}": 3,
    }
    assert [value for name, value in found.items() if "_bucket" in name] == [1, 1, 3]
    assert [name.partition('le="')[2].partition('"')[0] for name in found if "_bucket" in name] == [
        "0.25", "1.0", "+Inf",
    ]  # fmt: skip


def test_every_series_of_a_histogram_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporters.node.SERIES_LIMIT", 12)
    shown = NodePage(lambda: [histogram(LATENCY, ("s", "e", str(n), "0"), SEEN) for n in range(5)])
    assert shown.render().count(b"_count{") == 2
    assert shown.rejected == {"too_many_series": 3}


def test_buckets_belong_to_bounds() -> None:
    with pytest.raises(ValueError, match="2 bounds make 3 buckets, not 2"):
        Buckets((0.5, 1.0), (1, 2), 1.0)


def test_a_metric_that_only_looks_like_the_catalogues_is_not_shown() -> None:
    other = Metric(POWER.name, "gauge", "watts", ("node",), POWER.help)
    with pytest.raises(ValueError, match="unknown_metric"):
        page(Measurement(other, ("n",), 1))


def test_the_number_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporters.node.SERIES_LIMIT", 10)
    shown = NodePage(lambda: [Measurement(POWER, ("n", str(number)), 1) for number in range(25)])
    assert shown.render().count(b"\ngputally_device_power_watts{") == 10
    assert shown.rejected == {"too_many_series": 15}


def test_many_who_ask_at_once_cost_two_pages() -> None:
    """Whoever asks gets a page that was begun after he asked."""
    going, count = threading.Event(), []

    def measure() -> list[Measurement]:
        count.append(1)
        assert going.wait(20)
        return [Measurement(POWER, ("n", "GPU-1"), len(count))]

    shown = NodePage(measure)
    pages: list[bytes] = []
    first = threading.Thread(target=lambda: pages.append(shown.render()))
    first.start()
    until(lambda: count)
    rest = [threading.Thread(target=lambda: pages.append(shown.render())) for _ in range(50)]
    for thread in rest:
        thread.start()
    going.set()
    for thread in (first, *rest):
        thread.join(20)
    assert len(pages) == 51
    assert len(count) <= 1 + 50 // 10, "the pages were not shared"
    assert pages.count(pages[-1]) > 40
