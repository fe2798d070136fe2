"""Model servers as series: what is known, once each, under one vocabulary, whatever their pages say."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from collectors.serving.collector import EngineServer, Visit
from collectors.serving.engines import ENGINES
from collectors.serving.measured import measured_engines, measured_visit
from collectors.serving.samples import EngineSample, Histogram, ServingReading
from exporters.node import NodePage
from fleet.catalogue_serving import SERVING_METRICS
from tests.collectors.serving.engine_pages import FIXTURES, recorded, run

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.measurement import Measurement

PLACE = ("llm-a", "vllm", "m", "0")


def engine(**values: Any) -> EngineSample:
    return EngineSample(**{"engine": "vllm", "server": "llm-a", "model": "m", "engine_index": "0"} | values)


def series(*samples: EngineSample) -> dict[tuple[str, ...], Measurement]:
    """Series by name and labels, `gputally_serving_` left out; each is there once."""
    measured = list(measured_engines(samples))
    found = {(m.metric.name.removeprefix("gputally_serving_"), *m.labels): m for m in measured}
    assert len(found) == len(measured)
    return found


def test_what_is_known_is_shown_and_nothing_else() -> None:
    found = series(engine(requests_running=3, kv_used_ratio=0.0, generation_tokens=7, generation_counted="live"))
    assert {key: m.value for key, m in found.items()} == {
        ("engine_info", *PLACE, ""): 1,
        ("running_requests", *PLACE): 3,
        ("kv_used_ratio", *PLACE): 0.0,
        ("generation_tokens_total", *PLACE, "live"): 7,
    }


def test_words_stand_for_the_total_only_where_they_add_up_to_it() -> None:
    whole = series(engine(requests_waiting=6, requests_waiting_by_reason={"capacity": 5, "deferred": 1}))
    assert {key[-1]: m.value for key, m in whole.items() if key[0] == "waiting_requests"} == {
        "capacity": 5, "deferred": 1,
    }  # fmt: skip
    part = series(engine(requests_finished=9, requests_finished_by_reason={"stop": 5}))
    assert {key[-1]: m.value for key, m in part.items() if key[0] == "finished_requests_total"} == {"": 9}


def test_words_that_become_the_same_are_added_up() -> None:
    words = {"x" * 300: 1, "x" * 301: 2, "stop": 4}
    found = series(engine(requests_finished_by_reason=words, engine_busy_seconds=dict.fromkeys(words, 0.5)))
    assert {key[-1]: m.value for key, m in found.items() if key[0] == "finished_requests_total"} == {
        "x" * 256: 3, "stop": 4,
    }  # fmt: skip
    assert found["engine_busy_seconds_total", *PLACE, "x" * 256].value == 1.0


def test_a_gauge_that_tokens_contradict_is_not_shown() -> None:
    total = engine(requests_running=0, kv_used_ratio=0.0, generation_tokens=70, generation_counted="live")
    step = engine(generation_tokens=7, generation_counted="live", counters="delta")
    visit = Visit(ServingReading(samples=(total,)), ServingReading(samples=(step,)))
    names = {m.metric.name.removeprefix("gputally_serving_") for m in measured_visit(visit)}
    assert names == {"engine_info", "generation_tokens_total"}


def test_a_histogram_is_shown_whole_or_by_sum_and_count() -> None:
    good = Histogram((0.1, 1.0), (1, 2, 3), 4.5, 6)
    torn = Histogram((0.1, 1.0), (1, 2, 3), 4.5, 7)
    found = series(engine(histograms={"decode_time_seconds": good, "queue_time_seconds": torn, "step_tokens": good}))
    whole, rest = found["decode_time_seconds", *PLACE].buckets, found["queue_time_seconds", *PLACE].buckets
    assert whole
    assert rest
    assert (whole.bounds, whole.counts, whole.sum, whole.count) == ((0.1, 1.0), (1, 2, 3), 4.5, 6)
    assert (rest.bounds, rest.counts, rest.count) == ((), (7,), 7)
    assert not any(key[0] == "step_tokens" for key in found)


@given(
    st.lists(
        st.builds(
            engine, model=st.none() | st.text(max_size=300), engine_index=st.none() | st.sampled_from(["0", "\n0", ""]),
            requests_waiting_by_reason=st.none() | st.dictionaries(st.text(max_size=5), st.integers(0, 9)),
            requests_finished_by_reason=st.none() | st.dictionaries(st.text(max_size=5), st.integers(0, 9)),
            lora_active=st.none() | st.lists(st.text(max_size=300)).map(tuple), engine_version=st.none() | st.text(),
            engine_busy_seconds=st.none() | st.dictionaries(st.text(max_size=5), st.floats(0)),
            kv_used_ratio=st.none() | st.floats(0, 1),
        ),
        max_size=6,
    )
)  # fmt: skip
def test_no_text_of_an_engine_breaks_the_page_or_repeats_a_series(samples: list[EngineSample]) -> None:
    NodePage(lambda: measured_engines(samples), strict=True).render()


def test_names_that_clients_make_up_are_bounded() -> None:
    found = series(*(engine(model=f"m{n}", lora_active=tuple(map(str, range(100)))) for n in range(300)))
    assert len(found) == 256 * (1 + 64)


def test_recorded_engines_are_a_page_that_promtool_likes(promtool_bin: Path) -> None:
    samples = [
        replace(sample, server=f"{kind}/{page.name}")
        for kind in ("dynamo", "llamacpp", "lmdeploy", "sglang", "tgi", "triton", "vllm")
        for page in sorted((FIXTURES / kind).iterdir())
        if ".prom" in page.name
        for sample in recorded(kind, page.name).samples
    ]
    page = NodePage(lambda: measured_engines(samples), strict=True).render()
    done = subprocess.run([promtool_bin, "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    names = {line.split()[2] for line in page.decode().splitlines() if line.startswith("# TYPE")}
    assert names <= {metric.name for metric in SERVING_METRICS}
    assert len(names) > 20


def test_a_run_shows_the_engine_s_own_counter() -> None:
    server = EngineServer(ENGINES["vllm"], server="llm-a")
    visits = [server.read(page, read_at_ns=round(second * 1e9)) for second, page in run("a")]
    (last,) = (
        m.value for m in measured_visit(visits[-1]) if m.metric.name == "gputally_serving_generation_tokens_total"
    )
    assert last == visits[-1].totals.samples[0].generation_tokens
