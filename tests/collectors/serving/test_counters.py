"""Counters on disk: exactly what a page showed, within limits that hold whatever it shows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.serving.collector import EngineServer
from collectors.serving.counters import (
    MOST_BUCKETS,
    MOST_HISTOGRAMS,
    MOST_LABEL_CHARACTERS,
    MOST_VALUES,
    Counted,
)
from collectors.serving.engines import ENGINES
from collectors.serving.samples import Histogram
from tests.collectors.serving.engine_pages import SECOND, run

labels = st.frozensets(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=3)
keys = st.tuples(st.text(max_size=5), labels)
amounts = st.floats(0, 1e300)
histograms = st.builds(
    lambda counts, total: Histogram(tuple(map(float, range(len(counts) - 1))), tuple(counts), total, sum(counts)),
    st.lists(st.integers(0, 2**60), min_size=2, max_size=6),
    amounts,
)


def back(counted: Counted) -> Counted | None:
    return Counted.restored(json.loads(json.dumps(counted.state(), allow_nan=False)))


@given(
    st.builds(
        Counted,
        st.text(max_size=5),
        st.none() | st.integers(0, 2**63),
        st.none() | amounts,
        st.dictionaries(keys, amounts, max_size=5),
        st.dictionaries(keys, histograms, max_size=5),
    )
)
def test_what_was_counted_comes_back_as_it_was(counted: Counted) -> None:
    assert back(counted) == counted


def test_a_page_of_a_busy_engine_takes_little_room() -> None:
    server = EngineServer(ENGINES["vllm"], server="llm-a")
    for second, text in run("a")[:3]:
        visit = server.read(text, read_at_ns=round(second * SECOND))
    assert visit.counted is not None
    assert back(visit.counted) == visit.counted
    assert len(json.dumps(visit.counted.state())) < 8_000


def many(count: int, length: int = 1) -> dict[Any, float]:
    return {("x_total", frozenset({("user", f"{number:0{length}d}")})): 1.0 for number in range(count)}


def test_series_beyond_the_limit_are_left_out_and_counted() -> None:
    state = Counted("", values=many(MOST_VALUES + 5)).state()
    assert (len(state["values"]), state["left_out"]) == (MOST_VALUES, 5)


def test_labels_that_strangers_fill_take_no_more_than_their_room() -> None:
    state = Counted("", values=many(2_000, length=1_000)).state()
    assert state["left_out"] > 1_000
    assert len(json.dumps(state)) < 2 * MOST_LABEL_CHARACTERS


def test_buckets_go_before_sums_do() -> None:
    bounds = tuple(map(float, range(MOST_BUCKETS // 100)))
    seen = Histogram(bounds, (1,) * (len(bounds) + 1), 7.5, len(bounds) + 1)
    counted = Counted("", histograms=dict.fromkeys(many(MOST_HISTOGRAMS + 3), seen))
    state = counted.state()
    assert (len(state["histograms"]), state["left_out"]) == (MOST_HISTOGRAMS, 3)
    kept = back(counted)
    assert kept is not None
    assert {(h.bounds, h.counts, h.sum, h.count) for h in kept.histograms.values()} == {((), (), 7.5, seen.count)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", 2),
        ("of", 5),
        ("started", -1),
        ("ts_nanoseconds", 1.5),
        ("names", 5),
        ("labels", [[["a"]]]),
        ("values", [[0, 0, -1.0]]),
        ("values", [[0, 9, 1.0]]),
        ("values", [[0, 0, "1"]]),
        ("histograms", [[0, 0, 1.0, 2, [1.0], [1]]]),
        ("histograms", [[0, 0, 1.0, True, [], []]]),
    ],
)
def test_a_state_that_is_none_is_refused(name: str, value: object) -> None:
    state = Counted("of", 5, 1.0, many(1)).state()
    assert Counted.restored(state) is not None
    assert Counted.restored(state | {name: value}) is None
    assert Counted.restored({key: kept for key, kept in state.items() if key != name}) is None
    assert Counted.restored([]) is None
