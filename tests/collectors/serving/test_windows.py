"""Windows of model servers: what visits tell is conserved, whatever cuts it; what nobody saw is not made up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.rows.seconds import LONGEST_BRIDGE_SECONDS
from collectors.serving.collector import EngineServer, Visit
from collectors.serving.counters import Counted
from collectors.serving.engines import ENGINES
from collectors.serving.samples import EngineSample, Histogram, ServingReading
from collectors.serving.windows import EngineWindows
from fleet.telemetry import LIST_TEXT_LIMIT, QUALITY_BITS, EngineHistogramRow, EngineWindowRow
from tests.collectors.serving.engine_pages import SECOND, run

if TYPE_CHECKING:
    from collections.abc import Iterable

START = 1_800_000_000
Rows = list[EngineWindowRow | EngineHistogramRow]


def told(**values: Any) -> Visit:
    """A visit whose step has one row."""
    sample = EngineSample(**{"engine": "vllm", "server": "llm-a", "model": "m", "counters": "delta"} | values)
    return Visit(ServingReading(), ServingReading(samples=(sample,)))


FIRST = Visit(ServingReading(), None)


def fed(*visits: tuple[int, Visit | None], **settings_: int) -> Rows:
    """All rows of visits at seconds after the start."""
    windows, rows = EngineWindows(**settings_), Rows()
    for second, visit in visits:
        rows += windows.advance(START + second, "llm-a", visit)
    return [*rows, *windows.close(START + visits[-1][0])]


def engine(rows: Rows) -> list[EngineWindowRow]:
    return [row for row in rows if isinstance(row, EngineWindowRow)]


def histograms(rows: Rows) -> list[EngineHistogramRow]:
    return [row for row in rows if isinstance(row, EngineHistogramRow)]


def total(rows: Rows, column: str) -> int:
    return sum(getattr(row, column) or 0 for row in engine(rows))


SECONDS = st.one_of(st.integers(-100, 200), st.integers(3_000, 90_000))


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(
            SECONDS,
            st.none() | st.tuples(st.integers(0, 10**12), st.floats(0, 1e5), st.integers(0, 50), st.floats(0, 1)),
        ),
        max_size=12,
    )
)
def test_totals_are_conserved_for_any_cut(steps: list[tuple[int, tuple[int, float, int, float] | None]]) -> None:
    """Failed visits, long silences, clocks that go back: nothing is lost and nothing counted twice."""
    second, visits = 0, [(0, FIRST)]
    tokens = observed = 0
    busy = 0.0
    for seconds, step in steps:
        second += seconds
        if step is None:
            visits.append((second, None))
            continue
        added, busy_seconds, running, ratio = step
        tokens, busy, observed = tokens + added, busy + busy_seconds, observed + running
        seen = Histogram((1.0,), (running, 0), running * 0.3, running)
        visits.append(
            (second, told(generation_tokens=added, engine_busy_seconds={"all": busy_seconds}, requests_running=running,
                          kv_used_ratio=ratio, histograms={"decode_time_seconds": seen}))
        )  # fmt: skip
    rows = fed(*visits)
    assert total(rows, "generation_tokens") == tokens
    assert total(rows, "busy_ms") == pytest.approx(math.floor(busy * 1000), abs=1)
    assert sum(row.count for row in histograms(rows)) == observed
    assert total(rows, "scrape_count") == sum(visit is not None for _, visit in visits) - 1
    for row in engine(rows):
        assert row.window_start_second % 60 == 0
        assert 0 <= row.observed_ms <= row.window_ms <= 60_000
        assert (row.kv_used_ms or 0) <= row.kv_observed_ms <= row.observed_ms
    shared: dict[int, int] = {}
    for row in engine(rows):
        shared[row.window_start_second] = shared.get(row.window_start_second, 0) + row.window_ms
    if second <= LONGEST_BRIDGE_SECONDS:
        assert max(shared.values(), default=0) <= 60_000, "a window is accounted for twice"


def test_what_was_added_is_spread_by_time_and_what_stood_is_integrated() -> None:
    visit = told(generation_tokens=100, requests_running=3, requests_waiting=0, kv_used_ratio=0.5)
    first, second = engine(fed((40, FIRST), (70, visit)))
    assert (first.window_start_second, second.window_start_second) == (START, START + 60)
    assert (first.window_ms, first.observed_ms, first.generation_tokens) == (20_000, 20_000, 66)
    assert (second.window_ms, second.observed_ms, second.generation_tokens) == (10_000, 10_000, 34)
    assert (first.running_request_ms, first.running_max_requests, second.running_request_ms) == (60_000, 3, 30_000)
    assert (first.waiting_request_ms, first.waiting_max_requests) == (0, 0)
    assert (first.kv_used_ms, second.kv_used_ms, first.kv_used_max_millionths) == (10_000, 5_000, 500_000)
    assert (first.scrape_count, second.scrape_count) == (0, 1)


def test_a_window_is_sent_once_it_is_over_and_not_before() -> None:
    windows = EngineWindows()
    windows.advance(START, "llm-a", FIRST)
    assert windows.advance(START + 59, "llm-a", told(generation_tokens=1)) == ()
    (row,) = engine(list(windows.advance(START + 60, "llm-a", told(generation_tokens=2))))
    assert (row.window_ms, row.generation_tokens) == (60_000, 3)


def test_a_server_that_is_away_is_blind_time_and_its_tokens_come_later() -> None:
    windows = EngineWindows(longest_gap_seconds=45)
    windows.advance(START, "llm-a", FIRST)
    windows.advance(START + 15, "llm-a", told(generation_tokens=15, requests_running=1))
    assert windows.advance(START + 100, "llm-a", None) == ()
    (sent,) = engine(list(windows.advance(START + 106, "llm-a", None)))
    assert (sent.window_ms, sent.generation_tokens) == (15_000, 15)
    later = engine(list(windows.advance(START + 135, "llm-a", told(generation_tokens=120, requests_running=9))))
    assert [(row.window_ms, row.observed_ms, row.generation_tokens) for row in later] == [
        (45_000, 0, 45), (60_000, 0, 60),
    ]  # fmt: skip
    assert all(row.running_request_ms is None for row in later), "nobody looked"


def test_tokens_of_a_long_silence_go_to_their_hours() -> None:
    rows = engine(fed((0, FIRST), (3 * 3600, told(generation_tokens=300))))
    hours = {row.window_start_second: row.generation_tokens for row in rows if row.generation_tokens}
    assert sum(hours.values()) == 300
    assert len(rows) <= 5
    by_hour: dict[int, int] = {}
    for second, tokens in hours.items():
        by_hour[second // 3600] = by_hour.get(second // 3600, 0) + (tokens or 0)
    assert max(by_hour.values()) == 100


def test_a_clock_that_returns_from_a_jump_ends_the_windows_of_the_time_between() -> None:
    """Time may come by there once more, and a window takes a minute only."""
    windows, far, one = EngineWindows(), 2 * LONGEST_BRIDGE_SECONDS, told(generation_tokens=1)
    for second in (0, 15, far, far + 15):
        windows.advance(START + second, "llm-a", FIRST if second == 0 else one)
    (ahead,) = engine(list(windows.advance(START + 30, "llm-a", one)))
    assert (ahead.window_start_second, ahead.window_ms, ahead.generation_tokens) == (START + far, 15_000, 2)
    (here,) = engine(list(windows.close(START + 30)))
    assert (here.window_start_second, here.generation_tokens) == (START, 1)


def test_a_visit_that_tells_nothing_of_counters_leaves_them_known() -> None:
    windows, counted = EngineWindows(), Counted("here")
    windows.advance(START, "llm-a", FIRST._replace(counted=counted))
    windows.advance(START + 5, "llm-a", FIRST)
    windows.advance(START + 10, "llm-a", None)
    assert windows.counted("llm-a") is counted
    assert windows.counted("llm-b") is None


def test_unknown_is_none_and_never_0() -> None:
    (row,) = engine(fed((0, FIRST), (15, told(kv_used_ratio=0.25))))
    assert (row.observed_ms, row.kv_observed_ms, row.kv_used_ms) == (15_000, 15_000, 3_750)
    assert {row.generation_tokens, row.running_request_ms, row.finished_requests, row.busy_ms, row.asleep_ms} == {None}
    assert row.running_observed_ms == 0


def test_arrivals_drafts_operations_and_time_by_phase_are_added_up() -> None:
    """`mixed` and an engine's own words are in the whole time only. Thirds of a thousand million are not lost."""
    visit = told(requests_received=5, spec_drafts=10, spec_accepted_tokens=25, estimated_flops=10**9 // 3,
                 engine_busy_seconds={"prefill": 0.25, "decode": 2.5, "mixed": 1.0})  # fmt: skip
    (row,) = engine(fed((0, FIRST), *((second, visit) for second in (5, 10, 15, 20))))
    assert (row.received_requests, row.speculation_draft_events, row.estimated_gigaflops) == (20, 40, 1)
    assert (row.prefill_busy_ms, row.decode_busy_ms, row.busy_ms) == (1_000, 10_000, 15_000)
    # What one step of the engine yields, on average.
    assert 1 + (row.speculation_accepted_tokens or 0) / row.speculation_draft_events == 3.5
    (other,) = engine(fed((0, FIRST), (5, told(engine_busy_seconds={"compute_infer": 2.0}))))
    assert (other.busy_ms, other.prefill_busy_ms, other.decode_busy_ms) == (2_000, None, None)


def test_layouts_that_an_engine_makes_up_take_bounded_memory() -> None:
    """Each visit shows other bounds; what is carried for them must not grow for ever."""
    windows = EngineWindows()
    windows.advance(START, "llm-a", FIRST)
    for number in range(1, 1_001):
        seen = Histogram((float(number),), (1, 0), 0.3, 1)
        windows.advance(START + number, "llm-a", told(histograms={"decode_time_seconds": seen}))
    assert len(windows.state()["servers"]["llm-a"]["engines"][0][1]["carried"]) <= 256


def test_sleep_resets_and_doubt_are_kept() -> None:
    asleep = told(sleep_state="weights_offloaded", quality=("partial", "reset"), generation_counted="at_finish",
                  model_load_seconds=12.5, kv_capacity_tokens=1000, engine_version="0.33.0", role="decode")  # fmt: skip
    (row,) = engine(fed((0, FIRST), (10, asleep), (20, told(sleep_state="awake"))))
    assert (row.asleep_ms, row.counter_resets, row.model_load_ms, row.kv_capacity_tokens) == (10_000, 1, 12_500, 1000)
    assert row.quality_bits == QUALITY_BITS["partial"] | QUALITY_BITS["reset"]
    assert (row.generation_is_at_finish, row.engine_version, row.role) == (True, "0.33.0", "decode")


def test_histograms_of_different_layouts_are_never_merged() -> None:
    def seen(bounds: tuple[float, ...], *counts: int) -> Visit:
        return told(histograms={"decode_time_seconds": Histogram(bounds, counts, 0.25 * sum(counts), sum(counts))})

    rows = histograms(fed((0, FIRST), (5, seen((0.5, 1.0), 1, 2, 3)), (10, seen((0.5, 1.0), 1, 0, 0)),
                          (15, seen((0.5, 2.5), 4, 0, 0)), (20, seen((0.5, 2.5), 0, 0, 0))))  # fmt: skip
    found = {row.bounds: (row.counts, row.sum_microunits, row.count) for row in rows}
    assert found == {"0.5,1": ("2,2,3", 1_750_000, 7), "0.5,2.5": ("4,0,0", 1_000_000, 4)}


def test_a_layout_that_no_column_holds_keeps_its_sum() -> None:
    bounds = tuple(float(n) for n in range(2000))
    assert len(",".join(map(str, bounds))) > LIST_TEXT_LIMIT
    seen = Histogram(bounds, (1,) * 2001, 10.0, 2001)
    (row,) = histograms(fed((0, FIRST), (5, told(histograms={"decode_time_seconds": seen}))))
    assert (row.bounds, row.counts, row.count, row.sum_microunits) == ("", "", 2001, 10_000_000)


def test_a_number_that_no_column_holds_costs_itself_and_not_the_batch() -> None:
    (row,) = engine(fed((0, FIRST), (5, told(generation_tokens=2**63, prompt_tokens=7, engine_idle_seconds=1e300))))
    assert (row.generation_tokens, row.prompt_tokens, row.idle_ms) == (None, 7, None)
    assert row.quality_bits == QUALITY_BITS["rejected"]


def test_names_that_clients_make_up_are_bounded_and_counted() -> None:
    windows = EngineWindows()
    windows.advance(START, "llm-a", FIRST)
    samples = tuple(EngineSample(engine="vllm", server="llm-a", model=f"m{n}", prompt_tokens=1) for n in range(300))
    windows.advance(START + 5, "llm-a", Visit(ServingReading(), ServingReading(samples=samples)))
    assert len(windows.close(START + 5)) == 256
    assert windows.rejected == {"too_many_engines": 44}


def visits_of(pages: Iterable[tuple[float, str]]) -> list[tuple[int, Visit]]:
    server = EngineServer(ENGINES["vllm"], server="llm-a")
    return [(int(second), server.read(page, read_at_ns=round(second * SECOND))) for second, page in pages]


@pytest.mark.parametrize(("name", "generated"), [("a", 44_302), ("c", 32_979)])
def test_a_recorded_run_adds_up_in_windows_too(name: str, generated: int) -> None:
    """Run c was killed and started again; steps are cut wherever windows meet."""
    windows, rows = EngineWindows(window_seconds=60), Rows()
    visits = visits_of(run(name))
    for second, visit in visits:
        rows += windows.advance(second, "llm-a", visit)
    rows += windows.close(visits[-1][0])
    assert total(rows, "generation_tokens") == generated
    assert sum(row.window_ms for row in engine(rows) if row.model) >= 60_000
    finished = [row for row in histograms(rows) if row.signal == "time_to_first_token_seconds"]
    assert sum(row.count for row in finished) > 0
    assert all(sum(map(int, row.counts.split(","))) == row.count for row in finished)
