"""Steps: what each series added, whatever restarts, comes or goes, and never a negative number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.collectors.serving.engine_pages import counts, only, summed, walk

NAME = 'vllm:generation_tokens_total{engine="0",model_name="m"}'
START = "process_start_time_seconds"


def page(tokens: float, start: float | None = None, created: float | None = None, *more: str) -> str:
    lines = [f"{NAME} {tokens}", *more]
    lines += [] if start is None else [f"{START} {start}"]
    lines += [] if created is None else [f'vllm:generation_tokens_created{{engine="0",model_name="m"}} {created}']
    return "\n".join(lines)


def tokens(*pages: str | tuple[float, str]) -> list[int | None]:
    return [only(step).generation_tokens for step in walk("vllm", *pages)]


def test_a_value_that_fell_began_again() -> None:
    (step,) = walk("vllm", page(9.9e6, 1.7855e9), page(1204, 1.785542e9))
    assert (only(step).generation_tokens, step.counter_resets) == (1204, 1)
    assert "reset" in only(step).quality


def test_a_new_start_time_is_a_restart_although_the_value_rose() -> None:
    assert tokens(page(100, 1000), page(150, 2000)) == [150]
    assert tokens(page(100, 1000), page(150, 1001)) == [50]  # off by a second: the same process


def test_a_newer_process_counts_whole_although_it_ran_beside_the_older_one() -> None:
    """A server that is replaced: the new process warms up while the old one still answers."""
    assert tokens((100, page(100, 10)), (160, page(7, 50))) == [7]


def test_a_page_of_an_older_process_is_refused_once_and_believed_when_said_again() -> None:
    """Two servers behind one address must not be added up by turns; a clock that was set back must not blind."""
    older, newer = page(5_000, 1000), page(9_000, 2000)
    steps = walk("vllm", page(8_900, 2000), older, newer, older, newer)
    assert [only(step).generation_tokens for step in steps] == [None, 100, None, 0]
    assert [counts(step).get("older_process", 0) for step in steps] == [1, 0, 1, 0]
    set_back = walk("vllm", page(8_900, 2000), page(10, 1000), page(25, 1000), page(30, 1000))
    assert summed(set_back, "generation_tokens") == 30


OTHER = 'vllm:num_requests_running{engine="0",model_name="m"} 1'


def test_a_new_series_counts_whole_if_it_began_within_the_step() -> None:
    assert tokens((100, OTHER), (160, page(7, created=130))) == [7]
    assert tokens((100, OTHER), (160, page(7, start=130))) == [7]


def test_a_new_series_of_unknown_or_older_beginning_counts_from_here_on() -> None:
    for first in (page(7_000), page(7_000, created=50), page(7_000, start=50)):
        steps = walk("vllm", (100, OTHER), (160, first), (220, page(7_010)))
        assert [only(step).generation_tokens for step in steps] == [0, 10]
        assert [step.new_series for step in steps] == [1, 0]
        assert "partial" in only(steps[0]).quality


def test_a_new_series_counts_whole_after_a_restart_even_without_times() -> None:
    done = 'vllm:request_success_total{engine="0",finished_reason="error",model_name="m"} 4'
    (step,) = walk("vllm", page(10, 1000), page(12, 2000, None, done))
    assert only(step).requests_finished == 4
    assert step.new_series == 0


def test_a_counter_that_was_away_bridges_the_gap() -> None:
    assert summed(walk("vllm", page(100), OTHER, page(130)), "generation_tokens") == 30


def test_a_counter_that_was_away_over_a_restart_counts_from_nothing() -> None:
    gap = f"{OTHER}\n{START} 2000"
    assert summed(walk("vllm", page(100, 1000), gap, page(130, 2000)), "generation_tokens") == 130


def test_a_histogram_is_one_thing_when_it_begins_again() -> None:
    def latency(low: int, high: int, total: float) -> str:
        name, labels = "vllm:time_to_first_token_seconds", 'engine="0",model_name="m"'
        return "\n".join(
            [
                OTHER,
                f'{name}_bucket{{{labels},le="1"}} {low}',
                f'{name}_bucket{{{labels},le="+Inf"}} {low + high}',
                f"{name}_count{{{labels}}} {low + high}",
                f"{name}_sum{{{labels}}} {total}",
            ]
        )

    steps = walk("vllm", latency(5, 5, 20), latency(8, 6, 30), latency(1, 9, 40))
    found = [only(step).histograms["time_to_first_token_seconds"] for step in steps]
    assert [(each.counts, each.sum, each.count) for each in found] == [((3, 1), 10.0, 4), ((1, 9), 40.0, 10)]


def test_steps_say_how_long_they_are_where_pages_have_times() -> None:
    steps = walk("vllm", (100, page(1)), (160.5, page(2)), (160.5, page(2)))
    assert [only(step).interval_seconds for step in steps] == [60.5, None]
    assert only(walk("vllm", page(1), page(2))[0]).interval_seconds is None


@given(st.lists(st.tuples(st.integers(0, 10**12), st.booleans()), min_size=1, max_size=30))
def test_added_steps_are_exact_over_any_restarts(lives: list[tuple[int, bool]]) -> None:
    """Whatever is added between pages is found again, as long as a restart is seen by its start time."""
    total, value, start, pages = 0, 0, 1000, [page(0, 1000)]
    for added, restarts in lives:
        if restarts:
            value, start = 0, start + 100
        value += added
        total += added
        pages.append(page(value, start))
    assert summed(walk("vllm", *pages), "generation_tokens") == total


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=20))
def test_a_step_is_never_negative(values: list[int]) -> None:
    assert all((each or 0) >= 0 for each in tokens(*(page(value) for value in values)))
